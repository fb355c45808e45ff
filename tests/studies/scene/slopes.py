"""Gradients of a scene's values against differences of its rollouts."""

from types import SimpleNamespace

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.rollout import rollout
from studies.problem.scene_maps import SceneMaps, system_at
from studies.scene.building import build
from studies.scene.maps import values_of


def check_slopes(scene, paths, dt, n_steps, tolerance=1e-6):
    """Compare the gradient of where everything ends with differences, along each path."""
    built, rng = build(scene), np.random.default_rng(5)
    parameters = {path: values_of(built.values)[path] for path in paths}
    maps = SceneMaps(built, dt)

    def moved(values):
        system, state = system_at(built, values, dt, varies=True)
        return rollout(system, state, dt, n_steps, step=built.step, frames=[n_steps])

    here = moved({})
    adj = SimpleNamespace(
        x=rng.standard_normal(here.x.shape),
        bodies={
            name: {"position": rng.standard_normal(body.position.shape)}
            for name, body in here.bodies.items()
        },
    )

    def end(values):
        run = moved(values)
        parts = [
            np.vdot(run.bodies[k].position, adj_body["position"])
            for k, adj_body in adj.bodies.items()
        ]
        return float(np.vdot(run.x, adj.x) + sum(parts))

    system, state = system_at(built, {}, dt, varies=True)
    kept = record(system, state, dt, n_steps, step=built.step, frames=[n_steps])
    x = adj.x if adj.x.size else None
    bodies = adj.bodies or None
    gradient = maps.vjp({}, kept.vjp(x, bodies=bodies, wrt=maps.targets(parameters)))
    for path, value in parameters.items():
        tangent = rng.uniform(0.5, 1.0, value.shape) * (np.abs(value) + 0.1 * (value == 0.0))
        expected, errors = float(np.vdot(gradient[path], tangent)), []
        for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
            ends = [end({path: value + sign * h * tangent}) for sign in (1.0, -1.0)]
            errors.append(abs((ends[0] - ends[1]) / (2.0 * h) - expected))
        assert abs(expected) > 0.0, path
        assert min(errors) == pytest.approx(0.0, abs=tolerance * abs(expected)), path
