"""What does a soft beam look like to a renderer that is not ours?

    python -m benchmarks.assets.vtk_video

The hexahedral beam that PyVista ships, clamped at one end, falls under its weight. adjsim
simulates it; VTK draws it off-screen with its own light kit and highlights; the frames are
compressed to `hexbeam.mp4`, and what was done is written beside it in `hexbeam.toml`. The
bundled scene `identify` finds Young's modulus from that video; it needs neither a display nor
OpenGL, which this script does (on Debian: libegl1 or xvfb).
"""

from typing import Any

import numpy as np

from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.files import read_mesh
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.model import Model, State
from adjsim.rollout import rollout
from studies.runs import media
from studies.scene.declared import ASSETS


MESH, SCALE = "pyvista:hexbeam.vtk", 0.1
PINNED_BELOW_Z = 0.01  # [m]
MU, LAM, DENSITY = 1.2e5, 4.35e5, 1000.0  # [Pa], [Pa], [kg/m3]
GRAVITY = (0.0, -9.8, 0.0)  # [m/s2]
FPS, N_FRAMES, STEPS_PER_FRAME = 24.0, 14, 200
HEIGHT, WIDTH = 192, 256  # [pixels]
EYE, TARGET, FOV_Y = (1.1, 0.2, 0.08), (0.05, -0.06, 0.25), 28.0  # [m], [m], [deg]
COLOR, BACKGROUND = (0.85, 0.35, 0.2), (0.85, 0.88, 0.92)


def simulate(mesh: TetMesh) -> np.ndarray:
    """Return the positions of the nodes at the frames, (n_frames, n_nodes, 3) [m]."""
    beam = NeoHookeanTets(mesh.tets, mesh.points, mu=MU, lam=LAM)
    model = Model(
        mass=beam.lumped_mass(DENSITY),
        forces={"beam": beam},
        gravity=GRAVITY,
        pinned=mesh.points[:, 2] < PINNED_BELOW_Z,
    )
    frames = STEPS_PER_FRAME * np.arange(N_FRAMES)
    dt = 1.0 / (FPS * STEPS_PER_FRAME)
    return rollout(model, State(mesh.points), dt, int(frames[-1]), frames=frames).x


def draw(mesh: TetMesh, frames: np.ndarray) -> np.ndarray:
    """Return VTK's pictures of the frames, (n_frames, height, width, 3) in [0, 1]."""
    import pyvista

    surface = mesh.surface()
    plotter: Any = pyvista.Plotter(off_screen=True, window_size=[WIDTH, HEIGHT])
    plotter.set_background(BACKGROUND)
    plotter.enable_anti_aliasing("ssaa")
    body = pyvista.PolyData.from_regular_faces(frames[0][surface.nodes], surface.local_faces)
    plotter.add_mesh(body, color=COLOR, specular=0.3, specular_power=15.0)
    plotter.camera.position = EYE
    plotter.camera.focal_point = TARGET
    plotter.camera.up = (0.0, 1.0, 0.0)
    plotter.camera.view_angle = FOV_Y
    plotter.camera.clipping_range = (0.1, 100.0)
    images = []
    for x in frames:
        body.points = x[surface.nodes]
        plotter.render()
        images.append(media.as_float(plotter.screenshot(return_img=True)))
    plotter.close()
    return np.stack(images)


def main() -> None:
    """Write the video and its description."""
    import pyvista

    mesh = read_mesh(MESH, scale=SCALE)
    if not isinstance(mesh, TetMesh):
        raise TypeError(f"{MESH} holds no volume.")
    images = draw(mesh, simulate(mesh))
    path = media.write_video(ASSETS / "hexbeam.mp4", images, FPS, crf=16)
    vtk = ".".join(str(n) for n in pyvista.vtk_version_info)
    lines = [
        "# Written by benchmarks/assets/vtk_video.py: what hexbeam.mp4 shows.",
        f'renderer = "VTK {vtk}, light kit, specular 0.3"',
        f'mesh = "{MESH}"',
        f"scale = {SCALE}",
        "",
        "[truth]",
        f"mu = {MU}              # [Pa]",
        f"lam = {LAM}             # [Pa]",
        f"density = {DENSITY}           # [kg/m3]",
        f"gravity = {list(GRAVITY)}  # [m/s2]",
        f"pinned_below_z = {PINNED_BELOW_Z}      # [m]",
        f"dt = {1.0 / (FPS * STEPS_PER_FRAME)!r}  # [s]",
        "",
        "[video]",
        f"frames = {N_FRAMES}",
        f"fps = {FPS}",
        f"height = {HEIGHT}",
        f"width = {WIDTH}",
        "",
        "[camera]",
        f"eye = {list(EYE)}        # [m]",
        f"target = {list(TARGET)}  # [m]",
        f"fov_y = {FOV_Y}                  # vertical [deg]",
        "",
        "[appearance]",
        f"color = {list(COLOR)}",
        f"background = {list(BACKGROUND)}",
    ]
    path.with_suffix(".toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
