"""Small films with time stamps of any kind."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from studies.runs import media


def write_stamped(
    path: Path, images: np.ndarray, stamps: list[int], tick: Fraction, last: int = 0
) -> str:
    """Write images with these stamps, also wrong ones; the last is shown for `last` ticks.

    Frames are without loss in mkv, and JPEG in others.
    """
    codec, kind = ("ffv1", "bgr0") if path.suffix == ".mkv" else ("mjpeg", "yuvj420p")
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=30)
        stream.height, stream.width = images.shape[1:3]
        stream.pix_fmt, stream.time_base = kind, tick
        for k, (pixels, stamp) in enumerate(zip(media.as_uint8(images), stamps, strict=True)):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=kind)
            frame.pts = k
            for packet in stream.encode(frame):
                packet.pts, packet.dts, packet.time_base = stamp, min(k, stamp), tick
                if k == len(stamps) - 1 and last:
                    packet.duration = last
                container.mux(packet)
    return str(path)
