"""The user's video: its frames, what lies behind the body, and how the body is filmed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from render.annealing import softness
from render.camera import Camera
from render.soft_raster import SoftRasterizer
from studies import media
from studies.body import Body
from studies.errors import StudyError
from studies.filming import MeshFilming, Skin
from studies.first_frame import FirstFrame, given_look, silhouette


NAME = "body"
VISIBLE = 4.0  # pixels that the body must cover in the first frame
STILL = 8.0  # levels of 255: a change that compression and the noise of a camera make too


@dataclass(frozen=True, eq=False)
class Footage:
    """The frames that are compared, (n_frames, H, W, 3 or 4), and their rate [1/s]."""

    frames: np.ndarray
    fps: float

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.frames.shape[1], self.frames.shape[2]


def read_footage(settings: Mapping[str, Any], path: str) -> Footage:
    """Read the video of the settings: `time.frames`, `time.fps`, `image.downsample`."""
    time = settings["time"]
    _check_frames(time)
    try:
        video = media.read_video(path, downsample=settings["image"]["downsample"])
    except ValueError as error:
        raise StudyError(str(error).replace("`downsample`", "`image.downsample`")) from error
    frames, fps = video.frames, time["fps"] or video.fps
    if time["frames"] > len(frames):
        raise StudyError(
            f"`time.frames` must be at most the {len(frames)} frames of {path}, got "
            f"{time['frames']}; 0 compares all."
        )
    if len(frames) < 2:
        raise StudyError(f"`video` must have at least 2 frames to show a motion, {path} has 1.")
    if time["frames"]:
        frames = frames[: time["frames"]]
    if not fps:
        raise StudyError(f"`time.fps` must be given: {path} does not say its frames per second.")
    return Footage(frames, float(fps))


def advice_on_stillness(targets: np.ndarray) -> str | None:
    """Return a warning if a video hardly moves, (n_frames, H, W, C); else None."""
    largest = 255.0 * max(float(np.abs(frame - targets[0]).max()) for frame in targets)
    if largest > STILL:
        return None
    return (
        f"`video` hardly moves: no pixel that is compared differs from the first frame by more "
        f"than {largest:.2g} of 255 levels, which compression does too. No material can be "
        "identified from it: give a film, or a part of it, in which the body moves."
    )


def make_skin_filming(
    settings: Mapping[str, Any], body: Body, footage: Footage, *, device: str = "cpu"
) -> tuple[MeshFilming, np.ndarray]:
    """Return how the body is filmed, and the video that is compared, in RGB."""
    image, appearance = settings["image"], settings["appearance"]
    height = footage.size[0]
    first = FirstFrame(
        body.faces,
        body.rest_vertices,
        make_camera(settings["camera"]),
        SoftRasterizer(sigma=softness(image["softness"], height)),
        footage.frames[0, ..., :3],
    )
    covered = first.alpha().sum()
    if covered < VISIBLE:
        raise StudyError(
            f"`camera` does not see the body: it covers {covered:.1f} pixels of the first frame. "
            f"The body reaches from {first.vertices.min(axis=0).round(4).tolist()} to "
            f"{first.vertices.max(axis=0).round(4).tolist()} m."
        )
    is_rgb = check_compare(image["compare"]) == "rgb"
    fits = is_rgb and appearance["fit"]
    plate = read_plate(settings["background"], first, fits=fits)
    targets = over(footage.frames, plate)
    if is_rgb:
        look = given_look(appearance)
        look = first.over(plate).fit(look) if fits else look
    else:
        look = silhouette()
        targets = mask(footage.frames, plate, settings["background"]["threshold"])
        plate = np.zeros_like(plate)
    filming = MeshFilming(
        look.scene(body.faces),
        first.camera,
        first.over(plate).rasterizer,
        {NAME: Skin(body.skin)},
        first.size,
        device=device,
    )
    return filming, targets


def check_footage(settings: Mapping[str, Any]) -> None:
    """Complain of what can be wrong in the settings of a video before it is read."""
    image, time, background = (settings[key] for key in ("image", "time", "background"))
    if check_compare(image["compare"]) == "silhouette":
        checks.positive("background.threshold", background["threshold"])
    checks.positive("image.downsample", image["downsample"])
    checks.positive("image.softness", image["softness"])
    _check_frames(time)
    checks.array("background.color", background["color"], (3,))
    make_camera(settings["camera"])


def check_compare(compare: str) -> str:
    """Return what is compared if it is known."""
    return checks.known_key("`image.compare`", compare, ("rgb", "silhouette"))


def _check_frames(time: Mapping[str, Any]) -> None:
    checks.non_negative("time.fps", time["fps"])
    checks.non_negative("time.frames", time["frames"])
    if time["frames"] == 1:
        raise StudyError("`time.frames` must be at least 2 to show a motion, or 0 for all, got 1.")


def make_camera(camera: Mapping[str, Any]) -> Camera:
    """Return the camera of the settings' table `camera`."""
    return Camera(camera["eye"], camera["target"], camera["up"], camera["fov_y"])


def read_plate(settings: Mapping[str, Any], first: FirstFrame, *, fits: bool) -> np.ndarray:
    """Return the picture without the body: a file, a fitted or a given colour."""
    if settings["image"]:
        plate = media.read_image(settings["image"], name="background.image")[..., :3]
        factor = max(plate.shape[0] // first.size[0], 1)
        if plate.shape[:2] == (factor * first.size[0], factor * first.size[1]):
            plate = media.area_mean(plate, factor)
        if plate.shape != first.target.shape:
            raise StudyError(
                f"`background.image` must be as large as the video, {first.size[0]} x "
                f"{first.size[1]} (height x width) after image.downsample, got {plate.shape[0]} x "
                f"{plate.shape[1]}."
            )
        return plate
    color = first.background() if fits else np.array(settings["color"], float)
    return np.broadcast_to(color, first.target.shape).copy()


def over(frames: np.ndarray, plate: np.ndarray) -> np.ndarray:
    """Return the RGB of a video; where it has alpha, over the plate."""
    if frames.shape[-1] == 3:
        return frames
    alpha = frames[..., 3:]
    return alpha * frames[..., :3] + (1.0 - alpha) * plate


def mask(frames: np.ndarray, plate: np.ndarray, threshold: float) -> np.ndarray:
    """Return the body in white on black: alpha, or the difference from the plate."""
    checks.positive("background.threshold", threshold)
    if frames.shape[-1] == 4:
        alpha = frames[..., 3:]
    else:
        difference = np.abs(frames - plate).max(axis=-1, keepdims=True)
        alpha = np.clip(difference / threshold, 0.0, 1.0)
    return np.repeat(alpha, 3, axis=-1)
