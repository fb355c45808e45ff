"""Contact between bodies, and of a body with itself: pairs of surface features that change.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjsim.pairs.surface_contact import SurfaceContact as SurfaceContact

__getattr__, __dir__ = lazy_names(__name__)
