"""Where do the small pictures and meshes of the bundled scenes come from?

    python -m benchmarks.assets.pictures

`disc.png`, `heart.png`, `column.png` and `layer.png` cover a quarter of 110 x 110 pixels, white on
black with soft edges: the scene `smoke` begins and ends with such pictures. `curtain.vtp` is a
sheet about its centre with a printed pattern, one colour for each point: `cloth-velocity`. Table 3
of the paper has it with 231 points, `fine-curtain.vtp`, and a ball with 162 points on its surface:
`ball.vtu` has these and its centre, each triangle and the centre a tetrahedron.
"""

import numpy as np
from PIL import Image

from adjsim.meshes.ball import ball_tets
from adjsim.meshes.sheets import sheet
from studies.scene.declared import ASSETS


SHAPE, AREA = (110, 110), 0.25
HEART = 3.661972  # area of (x^2 + y^2 - 1)^3 < x^2 y^3
ASPECT = 3.0  # height of the column over its width
EDGE = 1.5  # width of soft edges [cells]
CELLS = (5, 3)  # of a curtain with these waves
WAVES = np.array([[5.0, 1.0, 0.3], [-1.5, 5.5, 1.1], [3.5, -4.0, 2.0]])  # of red, green, blue
BRIGHT, CONTRAST = 0.55, 0.35


def drawn(name: str) -> np.ndarray:
    """Return a shape that covers the part `AREA` of the grid, with soft edges."""
    n_y, n_x = SHAPE
    cells = AREA * n_y * n_x
    y, x = np.mgrid[:n_y, :n_x].astype(float)
    x, y = x - (n_x - 1) / 2.0, (n_y - 1) / 2.0 - y  # from the middle, y upwards [cells]
    if name == "layer":
        outside = y + n_y / 2.0 - AREA * n_y
    elif name == "column":
        half = np.sqrt(cells / ASPECT) / 2.0
        outside = np.maximum(np.abs(x) - half, np.abs(y) - ASPECT * half)
    elif name == "disc":
        outside = np.hypot(x, y) - np.sqrt(cells / np.pi)
    else:
        outside = _outside_heart(x, y, np.sqrt(cells / HEART))
    return np.clip(0.5 - outside / EDGE, 0.0, 1.0)


def _outside_heart(x: np.ndarray, y: np.ndarray, size: float) -> np.ndarray:
    """Return about the distance from the rim of a heart, positive outside [cells]."""
    x, y = x / size, y / size + 0.1  # 0.1: its middle is above its centre of mass
    f = np.cbrt((x * x + y * y - 1.0) ** 3 - x * x * y**3)
    d_y, d_x = np.gradient(f, 1.0 / size)
    return size * f / np.maximum(np.hypot(d_x, d_y), 0.5)


def write_curtain(name: str, cells: tuple[int, int]) -> None:
    """Write the sheet and its pattern, which has as many waves as cells."""
    import pyvista

    mesh = sheet(cells, (1.2, 0.8), (-0.6, -0.4, 0.0))
    surface = pyvista.PolyData.from_regular_faces(mesh.points, mesh.faces)
    finer = np.array(cells) / CELLS
    waves = np.sin((finer * mesh.points[:, :2]) @ WAVES[:, :2].T + WAVES[:, 2])
    surface.point_data["print"] = BRIGHT + CONTRAST * waves
    surface.save(ASSETS / f"{name}.vtp")


def write_ball() -> None:
    """Write a ball of radius 1 m of the tetrahedra between its surface and its centre."""
    import pyvista

    ball = ball_tets(4)
    surface = ball.surface()
    points = np.concatenate([np.zeros((1, 3)), ball.points[surface.nodes]])
    faces = 1 + surface.local_faces
    tets = np.column_stack([np.zeros(len(faces), np.int64), faces])
    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: tets}, points)
    grid.save(ASSETS / "ball.vtu")


def main() -> None:
    """Write all of them."""
    for name in ("disc", "heart", "column", "layer"):
        density = np.rint(255.0 * drawn(name)).astype(np.uint8)
        Image.fromarray(density).save(ASSETS / f"{name}.png", optimize=True)
    write_curtain("curtain", CELLS)
    write_curtain("fine-curtain", (20, 10))
    write_ball()


if __name__ == "__main__":
    main()
