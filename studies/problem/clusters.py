"""Which rows of the residuals are one piece of evidence."""

import numpy as np


STRIPS = 16  # clusters of a single picture
FEW_FRAMES = 4  # below that, frames are cut in strips


def row_clusters(n_rows: int, n_frames: int) -> tuple[np.ndarray, bool]:
    """Return the cluster of each residual row, `(n_rows,)`, and whether clusters correspond.

    A cluster is a frame. A few pictures are cut in strips of consecutive rows instead, which do
    not correspond row by row.
    """
    if n_frames >= FEW_FRAMES:
        return np.repeat(np.arange(n_frames), n_rows // n_frames), True
    return np.arange(n_rows) * STRIPS * n_frames // n_rows, False
