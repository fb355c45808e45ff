"""Scans of tiny scenes: everything real, nothing large."""

from studies.scans import scanning, spec
from studies.scans.terrain import make_grid


MASS = "cube.vertex_mass"
CUBE = ("observations.film.simulate={height=16, width=16, frames=3, duration=0.6}", "world.dt=0.1")
FILM = """
[cameras.front]
eye = [0.5, 0.3, 2.0]
target = [0.1, 0.0, 0.0]
fov_y = 40.0
[world]
dt = 1e-3
[observations.film]
simulate = { height = 16, width = 20, frames = 2, duration = 0.04 }
[search]
levels = 2
"""
BEAM = (
    FILM
    + """
[bodies.beam]
kind = "soft"
mesh = "box"
size = [0.6, 0.2, 0.2]
cells = [2, 1, 1]
mu = 2e5
lam = 3e5
velocity = [0.0, -3.0, 0.0]
held.plane = { point = [-0.29, 0.0, 0.0], normal = [1.0, 0.0, 0.0] }
[truth]
"beam.mu" = 2e5
[free]
"beam.mu" = { start = 3e5, bounds = [1e4, 1e7] }
"beam.lam" = { start = 2e5, bounds = [1e4, 1e7] }
"""
)
CONTACT = (
    FILM.replace("0.04", "0.3")
    + """
[bodies.body]
kind = "rigid"
mesh = "box"
size = [0.3, 0.2, 0.25]
mass = 2.0
position = [0.0, 0.16, 0.0]
rotation = [10.0, 0.0, 20.0]
velocity = [0.3, -1.0, 0.1]
[obstacles.floor]
stiffness = 500.0
damping = 5.0
friction_stiffness = 50.0
[free]
"body.mass" = { bounds = [0.1, 10.0] }
"""
)
PASSING = (
    FILM.replace("0.04", "0.25").replace("dt = 1e-3", "dt = 5e-4\ngravity = [0.0, 0.0, 0.0]")
    + """
[bodies.left]
kind = "rigid"
mesh = "box"
size = [0.1, 0.1, 0.1]
position = [-0.1, 0.0, 0.0]
velocity = [1.0, 0.0, 0.0]
[bodies.right]
kind = "rigid"
mesh = "box"
size = [0.1, 0.12, 0.1]
rotation = [10.0, 20.0, 30.0]
position = [0.1, 0.1, 0.0]
[contacts.touch]
between = ["left", "right"]
radius = 0.005
stiffness = 2e4
damping = 20.0
[free]
"right.position[1]" = { bounds = [0.0, 0.2] }
"""
)
PENDULUM = (
    FILM
    + """
[bodies.pendulum]
kind = "pendulum"
length = [1.0]
angle = [60.0]
[free]
"pendulum.length" = { start = 1.2 }
"""
)


def written(folder, text):
    """Return the path of a scene or scan file with this text, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "toy.toml"
    path.write_text(text)
    return str(path)


def asked(scan, overrides=(), over=(), **more):
    """Return what a command line gives for a scan."""
    given = {"scan": scan, "overrides": overrides, "over": over, "at": None, "trust": None}
    return {**given, "seed": None, "dtype": None, "checkpoint": None, **more}


def grid_of(scene, overrides, *over, **more):
    return make_grid(spec.resolve(asked(scene, overrides, over, **more)))


def run(folder, scene, overrides, *over, **more):
    """Scan into a folder; return the folder and what is told."""
    made, job = scanning.start(asked(scene, overrides, over, **more), folder)
    return made, job.run(made)
