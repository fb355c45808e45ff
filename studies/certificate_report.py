"""The part of a report that is about the gradient certificate: a table, and its Taylor sweeps."""

import html
from typing import Any

from studies import figures
from studies.certificate import Verdict, told, verdict_of
from studies.optimizers.problem import Status
from studies.report_parts import gallery


Points = dict[str, dict[str, Any]]


GOOD = {
    Verdict.PASSED: True,
    Verdict.SKIPPED: None,
    Verdict.BETWEEN_KINKS: None,
    Verdict.NOT_MADE: None,
    Verdict.FAILED: False,
}


def verdict(found: Verdict) -> tuple[bool | None, str]:
    """Return what is said first of it, as `page` takes it."""
    return GOOD[found], f"gradient certificate {told(found).lower()}"


def named_points(status: str, certified: dict[str, Any]) -> Points:
    """Return the points of the certificate by what they are: an optimum only if one was found."""
    end = "optimum" if Status[status].is_finished else "end of the search"
    return {end if key == "optimum" else key: point for key, point in certified["points"].items()}


def drawn(points: Points, certified: dict[str, Any]) -> dict[str, bytes]:
    """Return the figures of the Taylor sweeps by the names of their files."""
    return {
        f"taylor_{key}": figures.taylor(name, point)
        for key, (name, point) in zip(certified["points"], points.items(), strict=True)
        if is_made(point)
    }


def is_made(point: dict[str, Any]) -> bool:
    """Whether there are tests at a point to tell of."""
    return verdict_of(point) is not Verdict.NOT_MADE


def section(
    points: Points,
    images: dict[str, bytes],
    jumps: str,
    *,
    schedule: str | None = None,
    of: str = "",
) -> str:
    """Return the section of the report, folded; nothing of a certificate that was not made.

    `jumps` is why pixels may jump; `schedule` says which states were kept to be reversed; `of`
    names what it is about where there are several.
    """
    about = f" of {html.escape(of)}" if of else ""
    kept = f" Schedule of its reverse sweep: {html.escape(schedule)}." if schedule else ""
    made = {name: point for name, point in points.items() if is_made(point)}
    about_points = " ".join(
        [*_vanishing(made), *_left_out(made, jumps), *_touches(made), *_kinks(made)]
    )
    if not points:
        return ""
    return f"""<section>
<details><summary>Gradient certificate{about}</summary>
<div class="scroll">{_table(points)}</div>
{gallery(images)}
<p>With the right gradient the remainder of the loss's Taylor series falls with slope 2 (at least
1.9 over four halvings is asked for), with a wrong one with slope 1. Without any it falls with slope
1 too, unless the gradient is so small that the curvature outweighs it.
{about_points} The dot test compares tangent and adjoint of the whole chain from parameters to
pixels.{kept}</p></details>
</section>"""


def _table(points: Points) -> str:
    head = ("", "gradient norm", "slope without", "slope with", "dot test", "verdict")
    lines = [f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]
    for name, point in points.items():
        if not is_made(point):
            cells = [f"<b>at the {name}</b>", *["-"] * 4, _verdict_cell(point)]
            lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
            continue
        test, dot = point["taylor"], point["dot"]
        slopes = ["-" if test[key] is None else f"{test[key]:.3f}" for key in ("slope0", "slope1")]
        cells = [
            f"<b>{_where(name, point)}</b>",
            f"{point['gradient_norm']:.2e}",
            *slopes,
            "-" if dot["residual"] is None else f"{dot['residual']:.1e}",
            _verdict_cell(point),
        ]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _verdict_cell(point: dict[str, Any]) -> str:
    """Return the verdict of a point, or why it has failed."""
    found = verdict_of(point)
    if found is Verdict.NOT_MADE:
        return f"{told(found)}: {html.escape(point['reason'])}"
    if found is Verdict.PASSED and vanishes(point):
        return f"{told(found)}, as a gradient of 0 would"
    if found is not Verdict.FAILED:
        return told(found)
    return html.escape(point["taylor"]["reason"] or point["dot"]["reason"])


def vanishes(point: dict[str, Any]) -> bool:
    """Whether the Taylor test at a point would have passed with a gradient of 0 as well.

    So it is where the remainder without the gradient falls as fast as the one with it has to,
    whatever the norm of the gradient is: 1e-11 is much at a loss of 1e-20.
    """
    test = point["taylor"]
    return test["slope0"] is not None and test["slope0"] >= test["minimum_slope"]


def _vanishing(points: Points) -> list[str]:
    """Return where the Taylor test shows nothing of the gradient, and where it does."""
    gone = [name for name, point in points.items() if vanishes(point)]
    if not gone:
        return []
    shown = [
        f"at the {name}"
        for name, point in points.items()
        if name not in gone and verdict_of(point) is Verdict.PASSED
    ]
    norms = ", ".join(f"{points[name]['gradient_norm']:.1e}" for name in gone)
    where = " and ".join(f"at the {name}" for name in gone)
    sweep = f"the sweep {' and '.join(shown)} does" if shown else "no sweep here does"
    return [
        f"{where[0].upper()}{where[1:]} the gradient is so small (norm {norms}) that the slope "
        "without it is 2 too: a gradient of 0 would pass there as well, so that sweep does not "
        f"show the gradient to be right; {sweep}."
    ]


def _where(name: str, point: dict[str, Any]) -> str:
    """Return where a point of the certificate lies."""
    beside = point["beside"]
    return f"{beside:g} beside the {name}, where the gradient is 0" if beside else f"at the {name}"


def _left_out(points: Points, jumps: str) -> list[str]:
    """Return what the Taylor sweeps did not look at; `jumps` is why pixels may."""
    if not points:
        return []
    parts = [
        f"{point['left_out_pixels']} of {point['pixels']} at the {name}"
        for name, point in points.items()
    ]
    return [
        f"Pixels that jump within a sweep, as where {jumps}, stay out of it: {', '.join(parts)}."
    ]


def _touches(points: Points) -> list[str]:
    """Return how far theta may move at each point before a touch moves to another step."""
    sentences = []
    for name, point in points.items():
        touch = point["nearest_touch"]
        if touch and touch["distance"] is not None:
            sentences.append(
                f"At the {name} the touch of point {touch['node']} at step {touch['step']} moves "
                f"to another step, where the loss jumps or has a kink, if theta moves by "
                f"{touch['distance']:.1e}."
            )
    return sentences


def _kinks(points: Points) -> list[str]:
    """Return why no slope was judged at a point, and how far differences agree there."""
    sentences = []
    for name, point in points.items():
        if verdict_of(point) is Verdict.BETWEEN_KINKS:
            found = point["between_kinks"]
            sentences.append(
                f"At the {name} no slope can be read: steps above {found['reach']:.0e} cross "
                f"events of contact and friction, and shorter ones are lost in rounding. "
                f"Differences to either side by {found['step']:.0e} give the gradient to "
                f"{found['error']:.1e} of its size. That is no pass."
            )
    return sentences
