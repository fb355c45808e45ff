"""The gradient certificate on a page: one line, and its tests folded away."""

from typing import Any

from studies.answer.certificate import Outcome, in_words, verdict_of
from studies.optimizers.problem import Status
from studies.reports import figures
from studies.reports.content import Details, Text, charts, details, table
from studies.reports.figures import FigureFiles


HEAD = ("", "gradient norm", "slope without", "slope with", "dot test", "verdict")


def line(certified: dict[str, Any]) -> str:
    """Return the verdict of a certificate, and the numbers behind it, without a blind slope."""
    behind = []
    if (point := _point(certified)) and _is_made(point):
        slope, residual = point["taylor"]["slope1"], point["dot"]["residual"]
        behind += [] if slope is None or vanishes(point) else [f"slope {slope:.2f} of 2"]
        behind += [] if residual is None else [f"dot test {residual:.0e}"]
    text = in_words(verdict_of(certified))
    return f"{text} ({', '.join(behind)})" if behind else text


def folded(certified: dict[str, Any], status: str, files: FigureFiles) -> Details | None:
    """Return table, sweeps and remarks of a certificate."""
    where = "optimum" if Status[status].is_finished else "end of the search"
    if not (point := _point(certified)):
        return None
    drawn, remarks = {}, []
    if _is_made(point):
        remarks = _remarks(where, point)
        if any(remainder is not None for remainder in point["taylor"]["r1"]):
            file = files.save("taylor-1", figures.taylor(where, point))
            drawn[f"Taylor remainders at the {where}"] = file
    if kept := certified.get("schedule"):
        remarks.append(f"Schedule of the reverse sweep: {kept}.")
    return details(
        "Gradient certificate",
        table(HEAD, [_row(where, point)]),
        charts(drawn),
        Text(
            "With the right gradient the remainder of the loss's Taylor series falls with slope 2 "
            "(at least 1.9 over four halvings is required), with a wrong one with slope 1. The dot "
            "test compares tangent and adjoint of the whole chain from parameters to pixels. "
            + " ".join(remarks)
        ),
    )


def _point(certified: dict[str, Any]) -> dict[str, Any]:
    """Return the tests at the optimum; {} where none were asked for."""
    return certified.get("points", {}).get("optimum", {})


def _is_made(point: dict[str, Any]) -> bool:
    return verdict_of(point) is not Outcome.NOT_MADE


def _row(where: str, point: dict[str, Any]) -> list[str]:
    if not _is_made(point):
        reason = f"{in_words(verdict_of(point))}: {point['reason']}"
        return [f"at the {where}", *["-"] * 4, reason]
    test, dot, beside = point["taylor"], point["dot"], point["beside"]
    place = (
        f"{beside:g} beside the {where}, where the gradient is 0" if beside else f"at the {where}"
    )
    slopes = ["-" if test[key] is None else f"{test[key]:.3f}" for key in ("slope0", "slope1")]
    residual = "-" if dot["residual"] is None else f"{dot['residual']:.1e}"
    outcome = verdict_of(point)
    verdict = in_words(outcome)
    if outcome is Outcome.FAILED:
        verdict = test["reason"] or dot["reason"]
    elif outcome is Outcome.PASSED and vanishes(point):
        verdict += ", as a gradient of 0 would"
    return [place, f"{point['gradient_norm']:.2e}", *slopes, residual, verdict]


def vanishes(point: dict[str, Any]) -> bool:
    """Whether the Taylor test at a point would have passed with a gradient of 0 as well.

    So it is where the remainder without the gradient falls as fast as the one with it has to.
    """
    test = point["taylor"]
    return test["slope0"] is not None and test["slope0"] >= test["minimum_slope"]


def _remarks(where: str, point: dict[str, Any]) -> list[str]:
    """Return where the Taylor test shows nothing of the gradient, and what a sweep leaves out."""
    out = []
    if vanishes(point):
        out.append(
            f"At the {where} the gradient is so small that a gradient of 0 would pass as well, so "
            "the sweep does not show the gradient to be right."
        )
    out.append(
        "Pixels that jump within a sweep, as where faces swap their depth order, stay out: "
        f"{point['left_out_pixels']} of {point['pixels']}."
    )
    touch = point["nearest_touch"]
    if touch and touch["distance"] is not None:
        out.append(
            f"The touch of point {touch['node']} of `{touch['force']}` at step {touch['step']} "
            "moves to another step, where the loss jumps or has a kink, if theta moves by "
            f"{touch['distance']:.1e}."
        )
    if verdict_of(point) is Outcome.BETWEEN_KINKS and (between := point["between_kinks"]):
        out.append(
            f"No slope can be read: steps above {between['reach']:.0e} cross events of contact "
            "and friction, and shorter ones are lost in rounding. Differences to either side by "
            f"{between['step']:.0e} give the gradient to {between['error']:.1e} of its size. "
            "That is no pass."
        )
    return out
