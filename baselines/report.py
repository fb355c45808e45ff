"""What learned baselines leave: numbers, every guess, and a page that says what was trained."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from baselines.scores import relative_errors
from baselines.videos import Videos
from studies.reports.content import (
    Facts,
    Headline,
    Item,
    Media,
    Report,
    Table,
    Text,
    charts,
    section,
    table,
)
from studies.reports.figures import BLUE, INK, ORANGE, FigureFiles, make_axes
from studies.reports.page import write_report as write_page
from studies.runs.folder import RunFolder


GUESSES = "guesses.csv"
WIDE = 20.0  # a range of more than so many times is drawn by its logarithm


def write_guesses(folder: RunFolder, guesses: dict[str, np.ndarray], test: Videos) -> None:
    """Write every guess of the test set beside the truth, as a CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["method", "scene", "parameter", "unit", "truth", "guess", "relative error"])
    for method, guessed in guesses.items():
        errors = relative_errors(guessed, test.values)
        for row, scene in enumerate(test.scenes):
            for k, (name, unit) in enumerate(zip(test.names, test.units, strict=True)):
                numbers = (test.values[row, k], guessed[row, k], errors[row, k])
                writer.writerow([method, int(scene), name, unit, *map(float, numbers)])
    folder.write_text(GUESSES, out.getvalue())


def write_report(
    folder: RunFolder, result: dict[str, Any], guesses: dict[str, np.ndarray], test: Videos
) -> Path:
    """Draw the figures and write `report.html`; return its path."""
    files, names = FigureFiles(folder), [net["network"] for net in result["networks"]]
    curves = {
        f"losses of {net['network']}": files.save(f"learned_{net['network']}", learned(net))
        for net in result["networks"]
    }
    clouds = tuple(
        Item(
            files.save(f"guesses_{name}", guessed_beside(guesses[name], test)),
            f"guesses of {name} beside the truth",
            name,
            wide=True,
        )
        for name in names
    )
    facts = {
        "data set": f"{result['dataset']}, seed {result['seed']}, {result['train']} videos to "
        f"train, {result['test']} to test; shards {result['checksum'][:12]}",
        "frames": f"every {result['every']} frames one: {result['frames']} of a video",
        **{net["network"]: _trained(net) for net in result["networks"]},
        "versions": ", ".join(f"{name} {v}" for name, v in result["versions"].items()),
        "command": result["command"],
    }
    blind = (
        "Average and random guess without looking: the mean of the training set, and a value drawn "
        "from it."
    )
    sections = (
        section("Relative errors on the test set", scores_table(result), Text(blind)),
        section("Guess beside truth", Media(clouds)),
        section("Training", charts(curves), Facts(facts)),
    )
    report = Report(
        "Parameters guessed from a video",
        Headline("trained", "plain"),
        {"run": folder.path.name, "of": "learned baselines"},
        tuple(block for block in sections if block is not None),
    )
    return write_page(folder, report)


def _trained(net: dict[str, Any]) -> str:
    return (
        f"{net['weights']} weights, {net['epochs']} epochs in {net['seconds']:.0f} s on "
        f"{net['threads']} threads of the CPU, the best of them {net['best'] + 1}"
    )


def scores_table(result: dict[str, Any]) -> Table | None:
    """Return mean and median of the relative errors, a row for each method."""
    scores = result["scores"]
    names = list(dict.fromkeys(score["parameter"] for score in scores))
    cells = {
        (score["method"], score["parameter"]): f"{score['mean']:.3f} ({score['median']:.3f})"
        for score in scores
    }
    lines = [
        [method, *(cells[method, name] for name in names)]
        for method in dict.fromkeys(score["method"] for score in scores)
    ]
    head = ["mean (median)", *(name.replace("_", " ") for name in names)]
    return table(head, lines)


def learned(net: dict[str, Any]) -> Any:
    """Draw the losses over the epochs."""
    figure, (ax,) = make_axes(1, 1, (4.6, 3.2))
    epochs = np.arange(1, len(net["losses"]) + 1)
    for key, color in (("train", BLUE), ("kept_back", ORANGE)):
        ax.plot(epochs, [k[key] for k in net["losses"]], color=color, label=key.replace("_", " "))
    ax.set_xlabel("epoch", color=INK)
    ax.set_ylabel("mean square, in deviations", color=INK)
    ax.set_title(net["network"], fontsize=10, color=INK)
    ax.legend(frameon=False, fontsize=8)
    return figure


def guessed_beside(guessed: np.ndarray, test: Videos) -> Any:
    """Draw every guess over its truth."""
    from matplotlib.ticker import NullFormatter

    figure, axes = make_axes(1, len(test.names), (2.3 * len(test.names), 2.5))
    for k, (ax, name) in enumerate(zip(axes, test.names, strict=True)):
        truth, guess = test.values[:, k], guessed[:, k]
        ends = [min(truth.min(), guess.min()), max(truth.max(), guess.max())]
        ax.plot(ends, ends, color=INK, linewidth=0.8)
        ax.scatter(truth, guess, s=5, color=BLUE)
        if ends[1] > WIDE * ends[0]:
            ax.set(xscale="log", yscale="log")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_formatter(NullFormatter())
        unit = test.units[k]
        label = name.replace("_", " ") + ("" if unit == "-" else f" [{unit}]")
        ax.set_title(label, fontsize=9, color=INK)
        ax.tick_params(labelsize=7)
    return figure
