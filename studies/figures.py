"""Figures of `studies.reports.figures` as PNGs, for the reports of studies that are no scenes."""

from collections.abc import Callable
from typing import Any

from studies.reports import figures
from studies.reports.figures import COMPARED, difference_gain, make_axes, png


__all__ = ["COMPARED", "difference_gain", "make_axes", "png"]


def _painted(draw: Callable[..., Any]) -> Callable[..., Any]:
    def made(*arguments: Any) -> Any:
        figure = draw(*arguments)
        return (png(figure[0]), figure[1]) if isinstance(figure, tuple) else png(figure)

    return made


loss, gradient_norm = _painted(figures.loss), _painted(figures.gradient_norm)
parameter, many = _painted(figures.parameter), _painted(figures.many)
spectrum, instances = _painted(figures.spectrum), _painted(figures.instances)
taylor, strip = _painted(figures.taylor), _painted(figures.strip)
compared, flow = _painted(figures.compared), _painted(figures.flow)
