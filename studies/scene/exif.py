"""The field of view of a camera that took a JPEG picture, as the picture's EXIF data say."""

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from studies.scene.declared import Camera, Film, SceneFile


JPEG = (".jpg", ".jpeg")
ORIENTATION, EXIF, FOCAL_35 = 0x0112, 0x8769, 0xA405  # tags
DIAGONAL = math.hypot(36.0, 24.0)  # of a frame of 35 mm film [mm]
ROUNDING = 0.5  # of the focal length [mm]


def with_fields_of_view(file: SceneFile) -> SceneFile:
    """Return the scene whose cameras without a lens have the field of view of their picture."""
    cameras = {}
    for name, camera, picture in _pictures(file):
        if camera.fov_y is None and camera.K is None and (lens := _lens(picture)):
            focal, fov_y = lens
            error = max(camera.fov_error, ROUNDING / focal)
            cameras[name] = replace(camera, fov_y=fov_y, fov_error=error)
    return replace(file, cameras={**file.cameras, **cameras}) if cameras else file


def notes_on_fields_of_view(file: SceneFile) -> list[str]:
    """Return which cameras have the field of view of their picture."""
    return [
        f"`cameras.{name}.fov_y` = {camera.fov_y:.4g} deg is from the EXIF data of "
        f"{Path(picture).name}: {lens[0]:g} mm on 35 mm film. It is too large if the picture was "
        "cropped: then give `fov_y`."
        for name, camera, picture in _pictures(file)
        if (lens := _lens(picture)) and camera.fov_y == lens[1]
    ]


def _pictures(file: SceneFile) -> Iterator[tuple[str, Camera, str]]:
    """Yield cameras by name with the first JPEG picture of each."""
    only = next(iter(file.cameras)) if len(file.cameras) == 1 else None
    pictures: dict[str, str] = {}
    for film in file.observations.values():
        if isinstance(film, Film) and film.video and film.video.lower().endswith(JPEG):
            pictures.setdefault(film.camera or only or "", film.video)
    for name, camera in file.cameras.items():
        if name in pictures:
            yield name, camera, pictures[name]


def _lens(picture: str) -> tuple[float, float] | None:
    """Return the focal length on 35 mm film [mm] and the vertical field of view [deg].

    The diagonals of picture and film correspond, whatever their aspect: EXIF 2.32, CIPA DC-008.
    """
    from render.picture_files import open_picture  # heavy

    try:
        with open_picture(picture) as image:
            data, (width, height) = image.getexif(), image.size
            focal = float(data.get_ifd(EXIF).get(FOCAL_35, 0))
    except (OSError, SyntaxError, TypeError, ValueError, struct.error):
        return None  # what is wrong with the picture is said where it is read
    if not focal > 0.0:
        return None
    if data.get(ORIENTATION, 1) > 4:  # it lies on its side
        width, height = height, width
    half = 0.5 * height / math.hypot(width, height) * DIAGONAL
    return focal, math.degrees(2.0 * math.atan(half / focal))
