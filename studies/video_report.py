"""The part of a report that shows the video: target beside fit, and a strip of frames."""

import base64
from pathlib import Path
from typing import Any

import numpy as np

from studies import figures, run_folder
from studies.outcome import playback_fps
from studies.report_parts import FACES_SWAP, counted, largest_difference, wide
from studies.run_folder import RunFolder


def seen(folder: RunFolder, result: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the section of the report, and its figures by name."""
    del result
    frames = folder.read_npz(run_folder.FRAMES)
    strip, gain = figures.strip(frames)
    flow = _flow(folder, frames)
    enlarged = f"enlarged {gain:g} times" if gain > 1.0 else "not enlarged"
    target = video_source(folder.file(run_folder.TARGET_VIDEO))
    fitted = video_source(folder.file(run_folder.FITTED_VIDEO))
    text = f"""<section>
<h2>Target and fit</h2>
<div class="pair">
<figure><video src="{target}" controls loop muted autoplay \
playsinline></video>
<figcaption>target video, {_pace(frames["times"])}</figcaption></figure>
<figure><video src="{fitted}" controls loop muted autoplay \
playsinline></video>
<figcaption>fitted</figcaption></figure>
</div>
<p></p>
{wide(strip, "start, target, fitted and difference at a few instants")}
<p>Difference of fitted and target around mid grey, {enlarged}: \
{largest_difference(_largest(frames))}.</p>
{"".join(wide(data, "flow") for data in flow.values())}
</section>"""
    return text, {"strip": strip, **flow}


def facts(result: dict[str, Any]) -> dict[str, str]:
    """Return what the set-up says of the video."""
    height, width = result["size"]
    return {
        "what moves": result["what"],
        "video": f"{counted(len(result['frames']), 'frame')} of {height} x {width} pixels (height "
        f"x width), {result['n_values']} numbers compared",
        "time": f"{result['frames'][-1]} steps of {result['dt']:g} s",
    }


def jumps(folder: RunFolder) -> str:
    """Return where a pixel may jump."""
    is_flow = "velocity" in folder.read_npz(run_folder.TRAJECTORY)
    return "a lookup crosses into the next cell" if is_flow else FACES_SWAP


def _flow(folder: RunFolder, frames: dict[str, np.ndarray]) -> dict[str, bytes]:
    """Return the figure of the flow, if what moves is one."""
    velocity = folder.read_npz(run_folder.TRAJECTORY).get("velocity")
    return {} if velocity is None else {"flow": figures.flow(frames, velocity)}


def _largest(frames: dict[str, np.ndarray]) -> float:
    """Return that of the frames compared; those of earlier versions all were."""
    compared = frames.get("compared", np.ones(len(frames["times"]), bool))
    fitted, target = (frames[key][compared, ..., :3] for key in ("fitted", "target"))
    return float(abs(fitted - target).max())


def _pace(times: np.ndarray) -> str:
    """Return how the videos play."""
    slow = len(times) / playback_fps(len(times)) / max(float(times[-1] - times[0]), 1e-9)
    if slow < 0.95:
        return f"sped up {1.0 / slow:.1f} times"
    return f"slowed down {slow:.0f} times" if slow >= 2.0 else f"slowed down {slow:.1f} times"


def video_source(path: Path) -> str:
    """Return a film as the source of an element of a page."""
    return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode()}"
