"""The films of cloth, rigid bodies and pendula."""

from benchmarks.films.drawing import Shot
from benchmarks.films.film import Film, camera, floor


CLOTH_FILMS = (
    Film(
        name="cloth-hanging",
        scene={
            "bodies": {
                "cloth": {
                    "kind": "cloth",
                    "mesh": "sheet.ply",
                    "E": 4e4,
                    "nu": 0.3,
                    "thickness": 8e-3,
                    "density": 110.0,
                    "held": {
                        "box": {"lower": [-9.0, -9.0, -9.0], "upper": [-0.16, 9.0, -0.16]},
                        "plane": {"point": [0.18, 0.0, -0.18], "normal": [-1.0, 0.0, 1.0]},
                    },
                }
            },
            "cameras": camera((0.5, 0.25, 0.8), (0.0, -0.14, -0.05), 36.0),
        },
        free={"cloth.E": (1.2e4, (2e3, 1e6))},
        shot=Shot(fps=50),
        color=(0.25, 0.5, 0.7),
        guess=(0.3, 0.5, 0.6),
        plate="color",
        law="differs",
        note="two corners are held; St. Venant-Kirchhoff and quadratic bending",
    ),
    Film(
        name="cloth-flag",
        scene={
            "bodies": {
                "strip": {
                    "kind": "cloth",
                    "mesh": "strip.ply",
                    "position": [0.15, 0.0, 0.0],
                    "E": 2e5,
                    "nu": 0.3,
                    "thickness": 1e-3,
                    "density": 200.0,
                    "bending": 1.5e-2,
                    "held": {
                        "box": {"lower": [-0.001, -9.0, -9.0], "upper": [0.02, 9.0, 9.0]},
                    },
                }
            },
            "cameras": camera((0.3, 0.2, 0.6), (0.14, -0.08, 0.0), 35.0),
        },
        free={"strip.bending": (5e-2, (3e-4, 1.0))},
        color=(0.8, 0.3, 0.3),
        guess=(0.6, 0.4, 0.4),
        law="differs",
        note="a strip that bends under its weight; quadratic bending",
    ),
)

RIGID_FILMS = (
    Film(
        name="rigid-slide",
        scene={
            "bodies": {
                "box": {
                    "kind": "rigid",
                    "mesh": "box.ply",
                    "density": 700.0,
                    "position": [-0.17, 0.0301, 0.0],
                    "rotation": [0.0, 20.0, 0.0],
                    "velocity": [1.1, 0.0, 0.0],
                }
            },
            "obstacles": floor(0.25),
            "cameras": camera((0.08, 0.35, 0.65), (-0.01, 0.02, 0.0), 34.0),
        },
        free={
            "floor.friction": (0.7, (0.01, 2.0)),
            "box.velocity": ([0.5, 0.0, 0.0], (-4.0, 4.0)),
        },
        shot=Shot(fps=40, floor=0.0, tiles=True),
        color=(0.7, 0.5, 0.3),
        guess=(0.6, 0.4, 0.3),
        sharp=True,
        plate="picture",
        law="differs",
        note="hard contact; a chessboard",
    ),
    Film(
        name="rigid-tumble",
        scene={
            "bodies": {
                "box": {
                    "kind": "rigid",
                    "mesh": "box.ply",
                    "density": 700.0,
                    "position": [-0.17, 0.2, 0.0],
                    "rotation": [10.0, 15.0, 30.0],
                    "velocity": [0.9, 0.0, 0.0],
                    "spin": [0.0, 1.0, -4.0],
                }
            },
            "obstacles": floor(0.4),
            "cameras": camera((0.08, 0.3, 0.65), (0.0, 0.1, 0.0), 34.0),
        },
        free={"box.velocity": ([0.2, 0.0, 0.0], (-4.0, 4.0))},
        shot=Shot(fps=75, floor=0.0, shadow=True, noise=2.0),
        color=(0.35, 0.5, 0.3),
        guess=(0.4, 0.5, 0.4),
        sharp=True,
        law="differs",
        note="falls on an edge, turns over and slides; hard contact without restitution",
    ),
    Film(
        name="rigid-throw",
        scene={
            "bodies": {
                "cuboid": {
                    "kind": "rigid",
                    "mesh": "cuboid.obj",
                    "density": 500.0,
                    "position": [-0.25, -0.15, 0.0],
                    "velocity": [0.9, 2.6, 0.2],
                    "spin": [1.0, 6.0, 3.0],
                }
            },
            "cameras": camera((0.1, 0.1, 1.3), (0.0, -0.04, 0.0), 36.0),
        },
        free={
            "cuboid.velocity": ([0.3, 1.3, 0.0], (-8.0, 8.0)),
            "cuboid.spin": ([0.0, 2.5, 1.0], (-20.0, 20.0)),
        },
        shot=Shot(fps=50),
        color=(0.6, 0.35, 0.65),
        guess=(0.5, 0.4, 0.6),
        sharp=True,
        note="in flight; Euler's equations to 1e-10",
    ),
    Film(
        name="nut-throw",
        scene={
            "bodies": {
                "nut": {
                    "kind": "rigid",
                    "mesh": "nut.ply",
                    "scale": 0.006,
                    "density": 7800.0,
                    "position": [-0.72, 0.3, 0.5],
                    "velocity": [0.6, 2.6, 0.0],
                    "spin": [0.0, 2.0, 5.0],
                }
            },
            "world": {"gravity": [0.0, -9.81, 0.0]},
            "cameras": camera((0.1, 0.1, 1.4), (0.0, -0.02, 0.0), 34.0),
        },
        free={
            "world.gravity": ([0.0, -3.0, 0.0], (-30.0, 30.0)),
        },
        shot=Shot(fps=55, specular=0.5),
        color=(0.6, 0.6, 0.65),
        guess=(0.5, 0.5, 0.5),
        sharp=True,
        plate="color",
        note="in flight; a highlight",
    ),
)

PENDULUM_FILMS = (
    Film(
        name="pendulum",
        scene={
            "bodies": {
                "pendulum": {
                    "kind": "pendulum",
                    "length": [0.5],
                    "angle": [50.0],
                    "mass": [0.2],
                    "damping": [0.1],
                    "pivot": [0.0, 0.3, 0.0],
                    "bob_radius": 0.07,
                    "rod_radius": 0.012,
                }
            },
            "cameras": camera((0.1, 0.1, 1.3), (0.0, 0.03, 0.0), 36.0),
        },
        free={
            "pendulum.length": ([0.25], (0.05, 5.0)),
            "pendulum.damping": ([0.4], (0.003, 3.0)),
        },
        shot=Shot(fps=20),
        color=(0.75, 0.6, 0.2),
        guess=(0.6, 0.5, 0.3),
        note="a mass on a rod without mass, integrated to 1e-9",
    ),
    Film(
        name="double-pendulum",
        scene={
            "bodies": {
                "pendulum": {
                    "kind": "pendulum",
                    "length": [0.3, 0.25],
                    "angle": [70.0, 20.0],
                    "mass": [0.3, 0.2],
                    "damping": [0.0, 0.0],
                    "pivot": [0.0, 0.3, 0.0],
                    "bob_radius": 0.05,
                    "rod_radius": 0.012,
                }
            },
            "cameras": camera((0.1, 0.1, 1.25), (0.0, 0.05, 0.0), 36.0),
        },
        free={"pendulum.length": ([0.6, 0.12], (0.05, 2.0))},
        shot=Shot(fps=30),
        color=(0.3, 0.6, 0.55),
        guess=(0.4, 0.5, 0.5),
        plate="color",
        note="two masses, integrated to 1e-9",
    ),
)
