"""Other packages that draw the gallery's scenes, each imported when it is asked."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Other:
    """Another package: its name, and its module in this folder.

    The module has `missing()`, what is not installed or None, and `draw(shot)`, an RGB picture
    (height, width, 3), or None where the package has nothing like it.
    """

    name: str
    module: str

    def load(self) -> Any:
        """Import the module."""
        return import_module(f"studies.gallery.{self.module}")


OTHERS = (
    Other("VTK", "vtk_pictures"),
    Other("DEODR", "deodr_pictures"),
    Other("PyTorch3D", "pytorch3d_pictures"),
    Other("Mitsuba", "mitsuba_pictures"),
)
