"""What picture lies on a known mesh, told from several views of it, or from a single one?

    adjsim run texture
    adjsim run texture camera.views=1

A correct run ends with the texels that the pictures determine within 1e-8 of the hidden ones and
a certificate that passed. Pictures are linear in the texels, so the loss has one optimum; what
differs is how well a texel is seen. Each is searched for in units of how strongly the pictures
feel it, with which a few dozen evaluations are enough. Texels that no pixel looks at have no
gradient: they are no parameters, stay as they start, and are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from adjsim import checks
from render.blending import Hard
from render.losses import Mse
from render.orbit_camera import OrbitCamera
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from render.textured_files import read_texture
from render.textures import Texture, Wrap
from render.unwrapping import box_uv
from studies import figures, run_folder
from studies.errors import StudyError
from studies.instances import Bar, make_job
from studies.looks import LOOK_SIZE, Look, look_rasterizer
from studies.media import write_png
from studies.noise import Noise
from studies.optimizers.problem import Method
from studies.parameters import Parameters, block
from studies.picture_fit import PictureFit
from studies.picture_problem import PictureProblem
from studies.progress import EvaluationProgress
from studies.registry import Job, RunOptions
from studies.run_folder import RunFolder
from studies.scenery import Scenery, photographed
from studies.search.local import Found, make_search
from studies.settings import sun
from studies.subjects import cameras_around, find_textured, require_outside, view_names
from studies.texels import Told, averaged, drawn, on_faces, texel_matrix
from studies.transforms import Scaled
from studies.truth import Truth
from studies.uncertainty import Uncertainty
from studies.wires import Rows, Wire, Wires


NAME = "mesh"
PATH = f"{NAME}.texels"
DETERMINED, HARDLY = "texels", "texels_hardly_seen"  # free values; pictures tell the first
BAR = 1e-8
BOX = (0.0, 1.0)  # colours, as a picture file holds them
CAPTION = (
    "The hidden and the fitted texture, how far they are apart, and how well the pictures tell "
    "each texel: noise of a pixel comes through to it as many times. Light grey are texels on no "
    "face, dark grey those on faces that no pixel looks at; the fit leaves both as they started. "
    "Red is what is told only together with other texels."
)
MOST_TEXELS = 4000
ALIKE = 0.05  # of colours: what two pictures may differ by and look the same
ASIDE = 45.0  # at most, from the first picture to the first look from elsewhere [deg]
MOST_LOOKS = 4


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    is_clean = not settings["noise"]["level"] and not settings["noise"]["eight_bit"]
    bars = {DETERMINED: Bar(BAR)} if is_clean else {}
    return make_job(settings, options, partial(make_fit, settings, options), bars)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> "TextureFit":
    """Render the pictures of an instance, and return the search for its texture."""
    if settings["optimizer"]["method"] == Method.GAUSS_NEWTON:
        raise StudyError(
            "`optimizer.method` must not be gauss-newton here: there are thousands of columns. "
            "Take l-bfgs-b."
        )
    search = make_search(settings["optimizer"], without=[Method.GAUSS_NEWTON])
    rng = np.random.default_rng([options.seed, instance])
    hidden = hidden_scenery(settings, options, instance, rng)
    noise = Noise.of(settings["noise"])
    images = photographed(hidden)
    texels = texture_of(hidden)
    pictures_tell = told_of(hidden)
    cells = free_cells(settings["texture"], pictures_tell)
    parameters = free_texels(settings["texture"], pictures_tell, cells)
    values = {path: texels[of] for path, of in cells.items()}
    fit = TextureFit(
        PictureProblem(hidden, parameters, Mse(), noise.apply(images, rng)),
        search,
        options,
        title="A texture, from pictures of a known mesh",
        units={},
        what=f"a mesh of {len(hidden.scene.objects[NAME].faces)} faces under a texture of "
        f"{texels.shape[1]} x {texels.shape[0]} texels",
        truth=Truth(values, images, noise.apply, scales=dict.fromkeys(cells, 1.0)),
        instance=instance,
        names=view_names(cameras_around(settings["camera"])),
        findings=lambda theta: findings(fit, theta),
        hidden=hidden,
        told=pictures_tell,
        cells=cells,
        elsewhere=aside(settings["camera"]),
    )
    return fit


def told_of(hidden: Scenery) -> Told:
    """Return what the pictures tell of the texels.

    Raises
    ------
    StudyError
        If there are too many of them, or none is lit.
    """
    matrix = texel_matrix(replace(hidden, dtype="float64"), PATH)
    n_seen = len(np.unique(matrix.indices))
    if not n_seen:
        raise StudyError(
            "`mesh.ambient` and `mesh.diffuse` must not both be 0: every picture is black."
        )
    if n_seen > MOST_TEXELS:
        raise StudyError(
            f"`texture.height` and `texture.width` must leave at most {MOST_TEXELS} texels in "
            f"sight, got {n_seen}: each is a parameter, and the whole spectrum is computed."
        )
    return Told.by(matrix, texture_of(hidden).shape[:2])


def free_cells(table: dict[str, Any], told: Told) -> dict[str, np.ndarray]:
    """Return which texels are determined and which hardly, by path, (height, width) bool."""
    most = checks.positive("texture.gain", table["gain"])
    is_determined = told.gain <= most
    if not is_determined.any():
        least = np.nanmin(told.gain)
        raise StudyError(
            f"`texture.gain` must be at least {least:.2g} for some texel to be determined, got "
            f"{most:g}. Raise it, or take fewer texels, or more pixels."
        )
    cells = {DETERMINED: is_determined, HARDLY: (told.squares > 0.0) & ~is_determined}
    return {path: chosen for path, chosen in cells.items() if chosen.any()}


def free_texels(table: dict[str, Any], told: Told, cells: dict[str, np.ndarray]) -> Parameters:
    """Return the texels that pictures show as free values, in units of how they are felt."""
    start = table["start"]
    if not BOX[0] < start < BOX[1]:
        raise StudyError(f"`texture.start` must lie between 0 and 1, got {start:g}.")
    wires = tuple(Wire(path, PATH, Rows(np.nonzero(of), of.shape)) for path, of in cells.items())
    unseen = np.where(told.squares > 0.0, 0.0, start)
    free = [
        block(
            (path,),
            Scaled(1.0 / np.sqrt(told.squares[of])[:, None]),
            [np.full((of.sum(), 3), start)],
            {path: BOX},
        )
        for path, of in cells.items()
    ]
    return Parameters(free, Wires(wires, {PATH: np.repeat(unseen[..., None], 3, axis=2)}))


def texture_of(scenery: Scenery) -> np.ndarray:
    """Return the texture of the mesh, (height, width, 3)."""
    return cast("Any", scenery.scene.objects[NAME].texture).texels


def hidden_scenery(
    settings: dict[str, Any], options: RunOptions, instance: int, rng: np.random.Generator
) -> Scenery:
    """Return the scene with the texture that is looked for, and the cameras on it."""
    table = settings["texture"]
    for key in ("height", "width"):
        checks.positive(f"texture.{key}", table[key])
    require_outside(settings)
    points, mesh = find_textured(settings["mesh"], instance)
    texels = hidden_texels(table, mesh, rng)
    wrap = checks.known_key("mode in `texture.wrap`", table["wrap"], list(Wrap))
    uv, uv_faces = mesh.uv, mesh.uv_faces
    if mesh.texture is None:
        uv, uv_faces = box_uv(points, mesh.faces)
    material = Material(settings["mesh"]["ambient"], settings["mesh"]["diffuse"])
    seen = Mesh(
        mesh.faces, material=material, smooth_normals=settings["mesh"]["smooth"],
        texture=Texture(texels, wrap), uv=uv, uv_faces=uv_faces,
    )  # fmt: skip
    image = settings["image"]
    for key in ("height", "width"):
        checks.positive(f"image.{key}", image[key])
    background = checks.array("image.background", image["background"], (3,))
    light = sun(image)
    return Scenery(
        Scene({NAME: seen}, {"sun": light}), cameras_around(settings["camera"]),
        SoftRasterizer(background=background, blend=Hard()), {NAME: points},
        (image["height"], image["width"]), dtype=options.dtype, device=options.device,
    )  # fmt: skip


def hidden_texels(table: dict[str, Any], mesh: Mesh, rng: np.random.Generator) -> np.ndarray:
    """Return the texture that is looked for: from a picture file, that of the mesh, or drawn."""
    size = table["height"], table["width"]
    if table["picture"]:
        try:
            return averaged(read_texture(table["picture"]).texels, *size)
        except (OSError, ValueError) as error:
            reason = str(error).removeprefix("`texture`: ")
            raise StudyError(f"`texture.picture`: {reason}") from error
    return drawn(*size, rng) if mesh.texture is None else averaged(mesh.texture.texels, *size)


def aside(table: dict[str, Any]) -> tuple[OrbitCamera, ...]:
    """Return cameras that took no picture: between the others, their elevations reversed."""
    turn = min(180.0 / table["views"], ASIDE)
    turned = {"azimuth": table["azimuth"] + turn, "elevations": table["elevations"][::-1]}
    return cameras_around({**table, **turned, "views": MOST_LOOKS})


@dataclass(frozen=True, eq=False)
class TextureFit(PictureFit):
    """A fit of a texture, that knows which texels its pictures show.

    Attributes
    ----------
    hidden : Scenery
        With the texture that is looked for.
    told : Told
        What the pictures tell of the texels.
    cells : mapping of str to numpy.ndarray
        Which texels the free values of a path are, (height, width) bool.
    elsewhere : tuple of camera
        From where the mesh is looked at only to compare.
    """

    hidden: Scenery = field(kw_only=True)
    told: Told = field(kw_only=True)
    cells: dict[str, np.ndarray] = field(kw_only=True)
    elsewhere: tuple[OrbitCamera, ...] = field(kw_only=True)

    def solve(
        self,
        folder: RunFolder,
        progress: EvaluationProgress,
        place: str = "",
        say: Callable[[str], None] = lambda _text: None,
    ) -> tuple[Found, Uncertainty]:
        """Search; all singular values are known, the same in each channel."""
        found, spread = super().solve(folder, progress, place, say)
        if len(spread.singular_values) < len(found.best.theta):
            squares = np.maximum(self.told.eigenvalues[::-1], 0.0) / self.problem.n_pixels
            spread = replace(spread, singular_values=np.repeat(np.sqrt(squares), 3))
        return found, spread

    def errors(self, theta: np.ndarray) -> dict[str, Any]:
        """Return the errors of the texels that are determined, for the table of instances."""
        return {DETERMINED: super().errors(theta)[DETERMINED]}

    def texture(self, theta: np.ndarray) -> np.ndarray:
        """Return the texture at theta, (height, width, 3)."""
        return texture_of(self.problem.scenery_at(theta))

    def write_seen(self, folder: RunFolder, found: Found) -> None:
        """Write pictures and looks, and the textures as arrays and as a picture file."""
        super().write_seen(folder, found)
        fitted = self.texture(found.best.theta)
        folder.write_npz(
            run_folder.TEXTURE,
            hidden=texture_of(self.hidden),
            fitted=fitted,
            gain=self.told.gain,
            eigenvalues=self.told.eigenvalues,
            unseen=np.argwhere(self.told.squares == 0.0),
            **self.cells,
        )
        write_png(folder.file(run_folder.TEXTURE_PICTURE), fitted)

    def draw_looks(self, theta: np.ndarray, history: np.ndarray) -> list[Look]:
        """Draw the textures, and the mesh from sides that no picture shows."""
        del history
        hidden, fitted = texture_of(self.hidden), self.texture(theta)
        is_bare = ~on_faces(self.hidden.scene.objects[NAME])
        shown = [self.from_elsewhere(one)[..., :3] for one in (hidden, fitted)]
        difference = shown[1] - shown[0]
        largest = float(np.abs(difference).max())
        gain = figures.difference_gain(largest)
        rows = [*map(list, shown), list(0.5 + gain * difference)]
        return [
            Look("textures", "The textures", CAPTION,
                 figures.texels(hidden, fitted, self.told.gain, is_bare)),
            Look(
                "elsewhere",
                "From other sides",
                "The mesh under the hidden and the fitted texture from sides that are not in the "
                f"fit, and the difference around mid grey, at most {largest:.1e}, enlarged "
                f"{gain:g} times. What no picture shows is as it started.",
                figures.grid(rows, ["hidden", "fitted", "difference"]),
            ),
        ]  # fmt: skip

    def from_elsewhere(self, texels: np.ndarray) -> np.ndarray:
        """Return pictures of the mesh under a texture, from where no camera was, RGBA."""
        seen = self.hidden.with_values({PATH: texels})
        return rasterize(seen.scene, self.elsewhere, look_rasterizer(), seen.vertices, LOOK_SIZE)


def findings(fit: TextureFit, theta: np.ndarray) -> list[str]:
    """Return how many texels are determined, how well, and what other sides show."""
    told, determined = fit.told, fit.cells[DETERMINED]
    is_unseen = told.squares == 0.0
    n_bare = int((is_unseen & ~on_faces(fit.hidden.scene.objects[NAME])).sum())
    textures = texture_of(fit.hidden), fit.texture(theta)
    hidden, fitted = (fit.from_elsewhere(one) for one in textures)
    apart = np.abs(fitted - hidden).max(axis=-1)[hidden[..., 3] > 0.0]
    gain = told.gain[determined]
    sentences = [
        f"Of {determined.size} texels the pictures determine {determined.sum()}: noise of a pixel "
        f"comes through to them {np.median(gain):.2g} times, the median, and to the worst "
        f"{gain.max():.2g} times. Errors are differences of colours; 1 is white.",
        f"No pixel looks at {is_unseen.sum()}, of which {n_bare} lie on no face: they have no "
        "gradient, stay as they started, and are in no error. They are listed in "
        f"{run_folder.TEXTURE}.",
        f"In {len(fit.elsewhere)} pictures from other sides the pixels on the mesh differ by "
        f"{apart.mean():.1e} in the mean; {(apart > ALIKE).sum()} of {apart.size} by more than "
        f"{ALIKE:g}.",
    ]
    if HARDLY in fit.cells:
        sentences.insert(
            1,
            f"{fit.cells[HARDLY].sum()} more are looked at too little, or only together with "
            f"others ({told.n_hidden} directions leave no trace): they are fitted too, and listed "
            f"as `{HARDLY}`, so that their errors are not in those of `{DETERMINED}`.",
        )
    return sentences
