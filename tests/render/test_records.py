"""What a record says of itself is one line, whatever arrays it keeps."""

import numpy as np

from adjoint.render.outputs import record_outputs
from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.worlds import stack
from render.raster.layers import Output
from tests.render.scenes import camera, soft, two_tetrahedra


SIZE = (8, 12)


def test_a_record_of_a_rollout_is_told_in_a_line():
    model = Model(np.ones(300), {"floor": HalfSpaceContact(stiffness=1.0)})
    state = State(np.ones((300, 3)))
    run = record(model, state, 0.1, 5, frames=[1, 5])
    assert repr(run) == "Record(Model, n_steps=5, frames=2, states kept: 5)"
    worlds = record(stack([model, model]), [state, state], 0.1, 5)
    assert repr(worlds) == "Record(Batch, n_steps=5, frames=1, states kept: 5)"


def test_records_of_images_are_told_in_a_line(rng):
    scene, vertices = two_tetrahedra(rng)
    args = (scene, camera(), soft(), vertices, SIZE)
    names = ", ".join(scene.objects)
    text = f"ImageRecord(images=(8, 12, 4) float64, objects: {names})"
    assert repr(record_images(*args)) == text
    outputs = record_outputs(*args, [Output.MASK, Output.DEPTH])
    shapes = ", ".join(f"{name} {image.shape}" for name, image in outputs.images.items())
    assert repr(outputs) == f"OutputRecord({shapes}; objects: {names})"
    assert "depth (8, 12" in shapes
