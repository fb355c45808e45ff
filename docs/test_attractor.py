from attractor import Attractor

from adjoint.verify.contract import ForceContract
from adjsim import State


class TestAttractor(ForceContract):
    def make(self, rng):
        return Attractor(rng.uniform(0.5, 2.0, 20), (0.1, -0.2, 0.3), 0.4)

    def state(self, rng, force):
        return State(rng.standard_normal((20, 3)), rng.standard_normal((20, 3)))
