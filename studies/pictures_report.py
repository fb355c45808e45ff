"""The part of a report that shows pictures of a scene at rest: targets beside fits, and looks."""

import html
from typing import Any

import numpy as np

from studies import figures, run_folder
from studies.report_parts import FACES_SWAP, largest_difference, looks, wide
from studies.run_folder import RunFolder


MOST_SHOWN = 6  # pictures side by side


def seen(folder: RunFolder, result: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the section of the report, and its figures by name."""
    pictures = folder.read_npz(run_folder.PICTURES)
    n = len(pictures["target"])
    chosen = np.unique(np.rint(np.linspace(0, n - 1, min(n, MOST_SHOWN))).astype(int))
    titles = [str(pictures["names"][k]) for k in chosen]
    data, gain = figures.compared({key: pictures[key][chosen] for key in figures.COMPARED}, titles)
    enlarged = f"enlarged {gain:g} times" if gain > 1.0 else "not enlarged"
    largest = float(np.abs(pictures["fitted"][..., :3] - pictures["target"][..., :3]).max())
    left = f" {len(chosen)} of {n} pictures are shown." if n > len(chosen) else ""
    text = f"""<section>
<h2>Target and fit</h2>
{wide(data, "start, target, fitted and difference")}
<p>Difference of fitted and target around mid grey, {enlarged}: \
{largest_difference(largest)}, in any picture.{left}</p>
</section>
{looks(folder)}
{_diagnosis(result)}"""
    return text, {"pictures": data}


def facts(result: dict[str, Any]) -> dict[str, str]:
    """Return what the set-up says of the pictures."""
    height, width = result["size"]
    softness = ", ".join(f"{value:.3g}" for value in result["softness"])
    stages = f"{softness} pixels, one after the other" if softness else "0: edges are hard"
    return {
        "what is seen": result["what"],
        "pictures": f"{result['pictures']} of {height} x {width} pixels (height x width), "
        f"{result['n_values']} numbers compared",
        "softness of edges": stages,
    }


def jumps(folder: RunFolder) -> str:
    """Return where a pixel may jump."""
    del folder
    return FACES_SWAP


def _diagnosis(result: dict[str, Any]) -> str:
    """Return why a gradient of the start vanishes, if it does."""
    if not result["diagnosis"]:
        return ""
    head = ("pictures", "edges", "what is found", "at least as far away")
    lines = [f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]
    for row in result["diagnosis"]:
        far = "-" if row["distance"] is None else f"{row['distance']:.1f} pixels"
        cells = [html.escape(row["pictures"]), f"{row['softness']:.2g} pixels"]
        cells += [html.escape(row["reason"]), far]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"""<section>
<h2>What the start feels</h2>
<div class="scroll"><table>{"".join(lines)}</table></div>
<p>Whether the vertices feel the loss at the start, under the widest and the sharpest edges of the
search; the distance is from the outline to the nearest pixel that the loss looks at, or to the
view. {" ".join(map(html.escape, result["advice"]))}</p>
</section>"""
