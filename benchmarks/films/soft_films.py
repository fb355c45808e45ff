"""The films of soft bodies."""

from benchmarks.films.drawing import Shot
from benchmarks.films.film import Film, camera, floor, plane, soft


HELD_FILMS = (
    Film(
        name="beam-clamped",
        scene={
            "bodies": {
                "beam": soft(
                    "beam.vtu",
                    E=6e5,
                    nu=0.35,
                    position=[0.2, 0.0, 0.0],
                    held=plane([0.001, 0.0, 0.0], [1.0, 0.0, 0.0]),
                )
            },
            "cameras": camera((0.35, 0.08, 0.72), (0.19, -0.09, 0.0)),
        },
        free={"beam.E": (1.5e6, (1e4, 1e8))},
        sharp=True,
        plate="color",
        note="log neo-Hookean",
    ),
    Film(
        name="beam-twist",
        scene={
            "bodies": {
                "bracket": soft(
                    "bracket.vtu",
                    E=4e5,
                    position=[0.16, 0.0, 0.0],
                    held=plane([0.001, 0.0, 0.0], [1.0, 0.0, 0.0]),
                )
            },
            "cameras": camera((0.75, 0.3, 0.55), (0.17, -0.07, 0.0), 34.0),
        },
        free={"bracket.E": (5e4, (1e4, 1e7))},
        color=(0.3, 0.65, 0.35),
        guess=(0.4, 0.6, 0.4),
        sharp=True,
        solver={"consistent": True},
        note="an L that bends and twists; consistent mass matrix",
    ),
    Film(
        name="hexbeam-pushed",
        scene={
            "bodies": {
                "column": soft(
                    "hexbeam.vtk",
                    E=8e5,
                    scale=0.08,
                    rotation=[-90.0, 0.0, 0.0],
                    velocity=[0.9, 0.0, 0.0],
                    held=plane([0.0, 0.001, 0.0], [0.0, 1.0, 0.0]),
                )
            },
            "cameras": camera((0.15, 0.3, 0.75), (0.02, 0.2, -0.04), 34.0),
        },
        free={"column.E": (8e4, (5e3, 2e7))},
        shot=Shot(fps=60, floor=0.0, noise=4.0),
        color=(0.75, 0.7, 0.25),
        guess=(0.6, 0.6, 0.4),
        sharp=True,
        solver={"energy": "stvk"},
        note="St. Venant-Kirchhoff; noise of 4/255",
    ),
    Film(
        name="bridge-shadow",
        scene={
            "bodies": {
                "bridge": soft(
                    "bridge.vtu",
                    E=1.5e5,
                    position=[0.0, 0.2, 0.0],
                    held={
                        "nodes": [],
                        "box": {"lower": [-9.0, 0.0, -9.0], "upper": [-0.249, 9.0, 9.0]},
                        "plane": {"point": [0.249, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0]},
                    },
                )
            },
            "cameras": camera((0.2, 0.42, 0.85), (0.0, 0.13, 0.0), 36.0),
        },
        free={"bridge.E": (9e5, (1e4, 1e7))},
        shot=Shot(fps=40, floor=0.0, shadow=True, light=(0.2, 2.0, 0.4)),
        color=(0.7, 0.25, 0.3),
        guess=(0.7, 0.4, 0.4),
        sharp=True,
        solver={"energy": "volume"},
        note="(J - 1)^2 neo-Hookean; a shadow on the floor that the scene does not have",
    ),
    Film(
        name="duck-wall",
        scene={
            "bodies": {
                "duck": soft(
                    "duck.vtu",
                    E=2e4,
                    rotation=[0.0, 0.0, -90.0],
                    held=plane([0.012, 0.0, 0.0], [1.0, 0.0, 0.0]),
                )
            },
            "cameras": camera((0.2, 0.1, 0.62), (0.08, -0.02, 0.0), 34.0),
        },
        free={"duck.E": (5e4, (1e3, 1e6))},
        shot=Shot(fps=50, background=(0.35, 0.4, 0.5)),
        color=(0.9, 0.75, 0.15),
        guess=(0.8, 0.7, 0.3),
        plate="color",
        note="a duck whose base is on a wall",
    ),
    Film(
        name="torus-textured",
        scene={
            "bodies": {
                "ring": soft(
                    "torus.vtu",
                    E=3e4,
                    held={"ball": {"center": [0.0, 0.135, 0.0], "radius": 0.045}},
                )
            },
            "cameras": camera((0.15, 0.05, 0.75), (0.0, -0.03, 0.0), 32.0),
        },
        free={"ring.E": (1e4, (1e3, 1e6))},
        color=(0.85, 0.55, 0.6),
        guess=(0.7, 0.5, 0.5),
        texture=True,
        note="a pattern on the body that the scene does not have",
    ),
    Film(
        name="rod-swing",
        scene={
            "bodies": {
                "rod": soft(
                    "rod.vtu",
                    E=1e5,
                    nu=0.3,
                    position=[0.2, 0.0, 0.0],
                    held={"box": {"lower": [-0.001, -0.001, -9.0], "upper": [0.001, 0.001, 9.0]}},
                )
            },
            "cameras": camera((0.05, -0.1, 1.1), (0.0, -0.17, 0.0), 36.0),
        },
        free={"rod.E": (2e4, (2e3, 5e6))},
        color=(0.3, 0.35, 0.75),
        guess=(0.4, 0.4, 0.6),
        shot=Shot(fps=40),
        sharp=True,
        plate="color",
        note="held along a line, so that it swings and bends; log neo-Hookean",
    ),
)

FLOOR_FILMS = (
    Film(
        name="ball-drop",
        scene={
            "bodies": {"ball": soft("ball.vtu", E=5e4, position=[0.0, 0.36, 0.0])},
            "obstacles": floor(0.5),
            "cameras": camera((0.12, 0.32, 0.8), (0.0, 0.21, 0.0)),
        },
        free={"ball.E": (2e5, (3e3, 1e7))},
        shot=Shot(fps=45, floor=0.0),
        color=(0.2, 0.5, 0.8),
        guess=(0.3, 0.4, 0.7),
        law="differs",
        note="hard contact without restitution of nodes",
    ),
    Film(
        name="ball-thrown",
        scene={
            "bodies": {
                "ball": soft(
                    "ball.vtu", E=8e4, position=[-0.3, 0.25, 0.0], velocity=[1.0, -0.8, 0.0]
                )
            },
            "obstacles": floor(0.15),
            "cameras": camera((0.05, 0.4, 1.1), (0.03, 0.16, 0.0), 34.0),
        },
        free={
            "ball.E": (2.5e4, (2e3, 3e6)),
            "ball.velocity": ([0.5, 0.0, 0.0], (-4.0, 4.0)),
        },
        shot=Shot(floor=0.0, fps=55),
        color=(0.85, 0.4, 0.15),
        guess=(0.7, 0.4, 0.2),
        plate="picture",
        law="differs",
        note="hard contact and Coulomb friction",
    ),
    Film(
        name="jelly-block",
        scene={
            "bodies": {
                "jelly": soft(
                    "block.vtu",
                    E=1.5e4,
                    viscosity=10.0,
                    position=[0.0, 0.1, 0.0],
                    rotation=[0.0, 30.0, 0.0],
                )
            },
            "obstacles": floor(0.6),
            "cameras": camera((0.2, 0.28, 0.6), (0.0, 0.09, 0.0), 32.0),
        },
        free={"jelly.E": (5e4, (5e2, 1e6)), "jelly.viscosity": (30.0, (0.2, 200.0))},
        shot=Shot(floor=0.0, tiles=True, fps=40),
        color=(0.75, 0.25, 0.35),
        guess=(0.6, 0.3, 0.4),
        sharp=True,
        plate="picture",
        solver={"mesh": "block-fine.vtu"},
        law="differs",
        note="hard contact; the film is of a mesh with half the edges; a chessboard",
    ),
    Film(
        name="puck-slide",
        scene={
            "bodies": {
                "puck": soft(
                    "puck.vtu", E=6e4, position=[-0.17, 0.031, 0.0], velocity=[1.2, 0.0, 0.0]
                )
            },
            "obstacles": floor(0.3),
            "cameras": camera((0.08, 0.35, 0.65), (-0.02, 0.02, 0.0), 34.0),
        },
        free={"floor.friction": (0.08, (0.01, 2.0))},
        shot=Shot(fps=45, floor=0.0, shadow=True),
        color=(0.3, 0.55, 0.6),
        guess=(0.4, 0.5, 0.5),
        sharp=True,
        law="differs",
        note="a soft body slides to rest; hard contact; a shadow",
    ),
)
