"""Pendula and smoke, small, for every CUDA check."""

import numpy as np

from adjoint.rollout import record, rollout_jvp
from adjsim.courses import Signal
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke, SmokeState


DT, N_STEPS, FRAMES = 0.02, 6, (0, 3, 6)


def scenes():
    """System, state and the names of its two fields, by name."""
    rng = np.random.default_rng(31)
    link = {"center_of_mass": 0.8, "inertia": 0.2, "friction": 0.3, "friction_width": 0.5}
    simple = SimplePendulum(1.3, 0.7, 0.2, 9.8, rng.standard_normal(N_STEPS), **link)
    torque = Signal([0.0, 4.0], rng.standard_normal((2, 2)))
    links = {"inertia": (0.1, 0.07), "friction": (0.2, 0.3), "friction_width": 0.5}
    double = DoublePendulum((1.2, 0.7), (0.8, 1.3), (0.3, 0.2), 9.8, torque, **links)
    smoke = SmokeState(2.0 * rng.standard_normal((4, 5, 2)), rng.random((4, 5)))
    return {
        "simple": (simple, PendulumState(0.9, -1.1), ("angle", "rate")),
        "double": (double, PendulumState((0.9, 2.0), (-1.1, 0.6)), ("angle", "rate")),
        "smoke": (Smoke((4, 5)), smoke, ("velocity", "density")),
    }


def all_scenes(device, dtype=np.float64):
    """Frames, every gradient, stored and checkpointed, and a tangent of each scene, by name."""
    out = {}
    options = {"frames": FRAMES, "device": device, "dtype": dtype}
    for name, (system, state, fields) in scenes().items():
        rng = np.random.default_rng(32)
        run = record(system, state, DT, N_STEPS, **options)
        shown = [getattr(run.trajectory, field) for field in fields]
        adj = [rng.standard_normal(values.shape) for values in shown]
        gradient = run.vjp(*adj)
        tangents = {path: rng.standard_normal(value.shape) for path, value in gradient.items()}
        states, tangent = rollout_jvp(system, state, DT, N_STEPS, tangents, **options)
        few = record(system, state, DT, N_STEPS, checkpoint=3 * 60 * 8 * 2, **options)
        out |= {f"{name} vjp {path}": value for path, value in gradient.items()}
        out |= {f"{name} few {path}": value for path, value in few.vjp(*adj).items()}
        for field in fields:
            out[f"{name} {field}"] = getattr(states, field)
            out[f"{name} jvp {field}"] = getattr(tangent, field)
    return out


def launches(dtype):
    """Every body that pendula and smoke launch, with its arguments; nothing is run."""
    from adjoint.reduced import pendulum as pendulum_twin, smoke as smoke_twin
    from adjsim.jit import devices
    from adjsim.reduced import advection, pendulum, pendulum_loop, projection, smoke

    class Blank:
        """NumPy, but for arrays that stay as they are made: nothing fills them."""

        empty, empty_like = staticmethod(np.zeros), staticmethod(np.zeros_like)

        def __getattr__(self, name):
            return getattr(np, name)

    launched = {}
    devices.cuda_problem = lambda: None
    cpu_transforms = projection.fourier_transforms
    projection.fourier_transforms = lambda device, n: cpu_transforms(devices.Device.CPU, n)
    for module in (advection, pendulum, projection, smoke):
        module.array_module = lambda device: Blank()
    for module in (advection, pendulum_loop):
        module.on_device = lambda arrays: arrays
        module.launch = lambda body, n, args, **_: launched.setdefault(body.__name__, (body, args))
    for module in (pendulum_twin, smoke_twin):
        module.to_device = lambda arrays, device: arrays
    smoke.constants = lambda arrays, device: arrays
    all_scenes("cuda", dtype)
    return launched
