"""Every synthetic study in a tiny version, with the error that it must not exceed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Toy:
    """Overrides that make a study tiny, and what is asked of it then.

    `errors` holds the largest mean relative error of each path. `mistakes` are overrides
    with what the message must say.
    """

    study: str
    overrides: tuple[str, ...]
    errors: dict[str, float]
    mistakes: tuple[tuple[tuple[str, ...], str], ...]


SMALL = ("time.frames=6", "image.height=20", "image.width=32", "loss.levels=3")
FINAL = "optimizer.stages=[0.5, 1.0]"

BALL_MATERIAL = Toy(
    "ball-material",
    (
        "ball.shells=1",
        "hidden.mass=[0.8, 1.2]",
        "hidden.speed=[1.0, 1.5]",
        "time.dt=3e-3",
        "time.steps=100",
        "time.frames=5",
        "image.height=20",
        "image.width=24",
        "loss.levels=2",
        "optimizer.stages=[0.8, 1.0]",
    ),
    {"mass": 1e-6},
    (
        (("ball.shells=0",), "`ball.shells` must be positive"),
        (("ball.density=-1.0",), "`ball.density` must be positive"),
        (("ball.viscosity=-1.0",), "`ball.viscosity` must not be negative"),
        (("ball.position=[0.0, 1.0, 0.0]",), "`ball.position` must be above the floor"),
        (("hidden.mass=[0.0, 1.0]",), "`hidden.mass` must be positive"),
        (("hidden.mass=[1.5, 0.5]",), r"`hidden.mass` must be \[low, high\]"),
        (("hidden.lam=[100.0, 100.0]",), r"`hidden.lam` must be above hidden.mu/8 = 137.5"),
        (("hidden.speed=[3.0, 1.0]",), r"`hidden.speed` must be \[low, high\]"),
        (("start.mass=[6.0, 6.0]",), "start of `mass` must lie inside its bounds"),
        (("free=[]",), "`free` must name at least one of mass, material"),
        (('free=["weight"]',), "name in `free`"),
        (("bounds.mass=[1.0]",), r"`bounds.mass` must have shape \(2,\)"),
        (("floor.friction=-1.0",), "`floor.friction` must not be negative"),
    ),
)

CLOTH_VELOCITY = Toy(
    "cloth-velocity",
    (
        "cloth.cells=[2, 1]",
        "time.dt=2e-3",
        "time.steps=80",
        "time.frames=4",
        "image.height=20",
        "image.width=28",
        "loss.levels=2",
        "optimizer.stages=[0.25, 1.0]",
    ),
    {"velocity": 1e-6},
    (
        (("cloth.mu=0.0",), "`cloth.mu` must be positive"),
        (("cloth.size=[1.0, -1.0]",), "`cloth.size` must be positive"),
        (("cloth.cells=[0, 1]",), "`cloth.cells` must be positive"),
        (("cloth.cells=[4]",), r"`cloth.cells` must have shape \(2,\)"),
        (("cloth.size=[1.0]",), r"`cloth.size` must have shape \(2,\)"),
        (("cloth.viscosity=-1.0",), "`cloth.viscosity` must not be negative"),
        (("air.drag=-1.0",), "`air.drag` must not be negative"),
        (("hidden.z=[1.0, 0.0]",), r"`hidden.z` must be \[low, high\]"),
        (("start.x=[20.0, 20.0]",), "start of `velocity` must lie inside its bounds"),
        (("bounds.velocity=[1.0]",), r"`bounds.velocity` must have shape \(2,\)"),
    ),
)

RIGID_MASS = Toy(
    "rigid-mass",
    (
        'body.shapes=["cube"]',
        "time.dt=2e-3",
        "time.steps=150",
        "time.frames=3",
        "image.height=24",
        "image.width=24",
        "loss.levels=3",
        "optimizer.stages=[1.0]",
    ),
    {"body.mass": 1e-9},
    (
        (("body.radius=0.0",), "`body.radius` must be positive"),
        (('body.shapes=["ball"]',), "shape in `body.shapes`"),
        (("body.shapes=[]",), "`body.shapes` must name at least one of cube"),
        (("body.stretch=[0.0, 1.0]",), "`body.stretch` must be positive"),
        (("push.force=[1.0]",), r"`push.force` must have shape \(3,\)"),
        (("push.seconds=[1.0, 0.5]",), r"`push.seconds` must be \[first, last\]"),
        (('push.at="top"',), "place in `push.at`"),
        (("free=[]",), "`free` must name at least one of mass"),
        (('free=["friction"]',), "name in `free`"),
        (("hidden.mass=[0.0, 1.0]",), "`hidden.mass` must be positive"),
        (("start.mass=[3.0, 3.0]",), "start of `body.mass` must lie inside its bounds"),
    ),
)

RIGID_CONTACT = Toy(
    "rigid-contact",
    (
        'body.shapes=["cube"]',
        "time.dt=2e-3",
        "time.steps=300",
        "time.frames=8",
        "image.height=24",
        "image.width=36",
        "loss.levels=3",
        "optimizer.starts=2",
    ),
    {
        "body.mass": 1e-6,
        "floor.stiffness": 1e-6,
        "floor.damping": 1e-4,
        "floor.friction_stiffness": 1e-6,
        "floor.friction": 1e-6,
    },
    (
        (("floor.clearance=0.0",), "`floor.clearance` must be positive"),
        (("floor.at=[0.0, 1.0]",), r"`floor.at` must have shape \(3,\)"),
        (("bounds.mass=[0.5]",), r"`bounds.mass` must have shape \(2,\)"),
        (("hidden.friction=[1.0, 0.5]",), r"`hidden.friction` must be \[low, high\]"),
        (("start.damping=[0.0, 1.0]",), "`start.damping` must be positive"),
        (("thrown.spin=[1.0, 0.0]",), r"`thrown.spin` must be \[low, high\]"),
        (('free=["weight"]',), "name in `free`"),
    ),
)

LIGHT = Toy(
    "light",
    ('mesh.shapes=["cube"]', "camera.views=1", "image.height=16", "image.width=16"),
    {"coefficients": 1e-10},
    (
        (("mesh.radius=0.0",), "`mesh.radius` must be positive"),
        (("mesh.shapes=[]",), "`mesh.shapes` must name at least one of cube"),
        (('mesh.shapes=["aple"]',), "Did you mean `apple`.*Or give a mesh file"),
        (('mesh.shapes=["none.stl"]',), "`mesh.shapes`: there is no file none.stl"),
        (("mesh.color=[1.0]",), r"`mesh.color` must have shape \(3,\)"),
        (("hidden.even=[2.0, 1.0]",), r"`hidden.even` must be \[low, high\]"),
        (("start.even=[20.0, 20.0]",), "start of `coefficients` must lie inside its bounds"),
        (("bounds.coefficients=0.0",), "`bounds.coefficients` must be positive"),
        (("camera.views=0",), "`camera.views` must be positive"),
        (("camera.distance=-1.0",), "`camera.distance` must be more than `mesh.radius`"),
        (("camera.elevations=[]",), "`camera.elevations` must hold at least one angle"),
        (("camera.distance=500.0",), "`camera` must see the scene in every picture"),
        (("image.softness=0.0",), "`image.softness` must be positive"),
        (("image.background=[0.0]",), r"`image.background` must have shape \(3,\)"),
        (("noise.level=-0.1",), "`noise.level` must not be negative"),
        (("noise.repeats=-1",), "`noise.repeats` must not be negative"),
    ),
)

CAMERA = Toy(
    "camera",
    (
        'mesh.shapes=["chair"]',
        "image.height=24",
        "image.width=24",
        "loss.levels=3",
        "start.turn=[10.0, 10.0]",
        "start.shift=[0.05, 0.05]",
    ),
    {"rotation": 1e-8, "translation": 1e-8, "fov_y": 1e-8},
    (
        (("free=[]",), "`free` must name at least one of rotation, translation, fov_y"),
        (('free=["rotation", "rotation"]',), "`free` must name at least one of rotation"),
        (('free=["zoom"]',), "Unknown name in `free` `zoom`"),
        (("hidden.distance=[0.0, 1.0]",), "`hidden.distance` must be positive"),
        (("hidden.target=[1.0, 0.0]",), r"`hidden.target` must be \[low, high\]"),
        (("start.zoom=[0.0, 0.0]",), "`start.zoom` must be positive"),
        (("start.zoom=[4.0, 4.0]",), "start of `fov_y` must lie inside its bounds"),
        (("bounds.rotation=0.01",), "hidden `rotation` must lie inside its bounds too"),
        (("bounds.translation=0.0",), "`bounds.translation` must be positive"),
        (("image.light=[0.0, 1.0]",), r"`image.light` must have shape \(3,\)"),
        (("image.light=[0.0, 0.0, 0.0]",), "`image.light` must not be zero"),
        (("optimizer.softness=[]",), "`optimizer.softness` must be factors that fall to 1.0"),
        (("optimizer.softness=[1.0, 2.0, 1.0]",), "`optimizer.softness` must be factors"),
        (("hidden.target=[9.0, 9.0]",), "`camera` must see the scene in every picture"),
    ),
)

TEXTURE = Toy(
    "texture",
    (
        'mesh.shapes=["cube"]',
        "texture.height=6",
        "texture.width=9",
        "camera.views=3",
        "image.height=24",
        "image.width=24",
    ),
    {"texels": 1e-8},
    (
        (("camera.views=0",), "`camera.views` must be positive"),
        (("texture.height=0",), "`texture.height` must be positive"),
        (("texture.width=-3",), "`texture.width` must be positive"),
        (
            ("texture.height=200", "texture.width=300", "image.height=128", "image.width=128"),
            r"`texture.width` must leave at most 4000 texels in sight, got \d+",
        ),
        (("mesh.ambient=0.0", "mesh.diffuse=0.0"), "`mesh.ambient` and `mesh.diffuse` must not"),
        (("texture.start=0.0",), "`texture.start` must lie between 0 and 1, got 0"),
        (("texture.gain=0.0",), "`texture.gain` must be positive"),
        (("texture.gain=1e-9",), "`texture.gain` must be at least .* for some texel"),
        (("texture.wrap=mirror",), "Unknown mode in `texture.wrap` `mirror`"),
        (("texture.picture=none.png",), "`texture.picture`: there is no file none.png"),
        (('mesh.shapes=["none.obj"]',), "`mesh.shapes`: there is no file none.obj"),
        (("mesh.radius=0.0",), "`mesh.radius` must be positive"),
        (("image.height=0",), "`image.height` must be positive"),
        (("image.light=[0.0, 1.0]",), r"`image.light` must have shape \(3,\)"),
        (("image.light=[0.0, 0.0, 0.0]",), "`image.light` must not be zero"),
        (("camera.distance=500.0",), "`camera` must see the scene in every picture"),
        (("noise.level=-0.1",), "`noise.level` must not be negative"),
        (("optimizer.memory=0",), "`optimizer.memory` must be positive"),
        (("optimizer.method=gauss-newton",), "`optimizer.method` must not be gauss-newton here"),
    ),
)

TOYS = {
    toy.study: toy
    for toy in (
        BALL_MATERIAL, CLOTH_VELOCITY, RIGID_MASS, RIGID_CONTACT,
        LIGHT, CAMERA, TEXTURE,
    )
}  # fmt: skip
