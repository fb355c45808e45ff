"""The first part of a film."""


def first_part(count: int, part: float) -> int:
    """Return how many of the frames are the first part of a video, at least one."""
    return max(1, round(part * count))
