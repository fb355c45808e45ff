"""The laps over the soft rasterizer: a ball by size, by blend, and by how it is shaded."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from adjoint.render.soft_raster import record_images
from render.blending import Over, Softmax
from render.soft_raster import SoftRasterizer, rasterize
from studies.timing_clock import Lap
from studies.timing_laps import BOTH, FORWARD
from studies.timing_scenes import FLAT, make_ball


SIGMA = 1e-5
BLENDS = {"over": Over, "softmax": Softmax}


def image_laps(
    images: Mapping[str, Any], dtypes: list[str], threads: list[int], seed: int
) -> Iterator[Lap]:
    """Give the laps of the rasterizer, forward and with reverse, in the first of `dtypes`.

    First every pair of `faces` and `pixels` with every blend; then, in the blend that is the
    default, the first of `faces` in every look beside flat shading, and the growth with either.
    """
    sizes = [(faces, pixels) for faces in images["faces"] for pixels in images["pixels"]]
    for blend in images["blends"]:
        for size in sizes:
            labels = {"part": "images", "blend": blend, "dtype": dtypes[0]}
            yield from _ball_laps(size, labels, threads, seed)
    looks = dict.fromkeys((FLAT, *images["looks"])) if images["looks"] else []
    for size in sizes[: len(images["pixels"])]:
        for look in looks:
            labels = {"part": "looks", "blend": "over", "dtype": dtypes[0], "look": look}
            yield from _ball_laps(size, labels, threads, seed)
    growth = images["growth"]
    sizes = [(growth["at_faces"], pixels) for pixels in growth["pixels"]]
    sizes += [(faces, growth["at_pixels"]) for faces in growth["faces"]]
    for size in dict.fromkeys(sizes):
        labels = {"part": "growth", "blend": "over", "dtype": dtypes[0]}
        yield from _ball_laps(size, labels, threads, seed)


@cache
def covered_share(n_faces: int) -> float:
    """Return the share of the image that the ball covers: about half, of a cube less."""
    ball = make_ball(n_faces, 0)
    rasterizer = SoftRasterizer(sigma=SIGMA)
    vertices = {"ball": ball.points}
    image = rasterize(ball.scene, ball.camera, rasterizer, vertices, (128, 128), threads=1)
    return float((image[..., 3] > 0.5).mean())


def _ball_laps(
    size: tuple[int, int], labels: dict[str, Any], threads: list[int], seed: int
) -> Iterator[Lap]:
    (n_faces, pixels), dtype = size, labels["dtype"]
    ball = make_ball(n_faces, seed, labels.get("look", FLAT))
    rng = np.random.default_rng(seed)
    adj = rng.standard_normal((pixels, pixels, 4)).astype(dtype)
    rasterizer = SoftRasterizer(sigma=SIGMA, blend=BLENDS[labels["blend"]]())
    vertices = {"ball": ball.points.astype(dtype)}
    args = (ball.scene, ball.camera, rasterizer, vertices, (pixels, pixels))
    every = 3 if labels["part"] == "growth" else 1
    for n_threads in threads:
        mine = {**labels, "faces": n_faces, "pixels": pixels, "threads": n_threads}

        def draw(n: int = n_threads) -> object:
            return rasterize(*args, threads=n)

        def both(n: int = n_threads) -> object:
            return record_images(*args, threads=n).vjp(adj)

        yield Lap({**mine, "pass": FORWARD}, 1.0, draw, every=every)
        yield Lap({**mine, "pass": BOTH}, 1.0, both, every=every)
