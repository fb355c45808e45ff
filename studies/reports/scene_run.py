"""The report of a run of a scene, from what is in its folder."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from studies.answer.fit_warnings import fit_warnings
from studies.answer.verdict import Kind
from studies.reports import certificate, coarse, figures
from studies.reports.bars import answer_bars
from studies.reports.content import (
    Block,
    Code,
    Details,
    Facts,
    Headline,
    Item,
    Json,
    Links,
    Media,
    Motion,
    Report,
    Section,
    Text,
    Value,
    charts,
    details,
    section,
    table,
)
from studies.reports.control import control_section
from studies.reports.figures import FigureFiles
from studies.reports.instances import instances_section
from studies.reports.numbers import count, estimate, interval, number, truth_error
from studies.reports.page import write_report as write_page
from studies.reports.space import motion_view
from studies.runs import folder as run_folder
from studies.runs.evaluations import Evaluation
from studies.runs.folder import RunFolder
from studies.search.coarse import of_last_stage, read_search


Sections = Iterator[Section | None]
LOOKS = "looks.npz"  # pictures of shapes and textures by name, (rows, columns, height, width, 3)
MOTION = "motion.json"  # what the page shows in space
FILMS, THUMBNAIL = "films.json", "films/thumbnail.jpg"  # written by `studies/fitting/writing.py`
SHOWN_PARAMETERS = 6
MOST_FILMS = 3  # that are not folded
INTERVAL = "95 % interval\nwith model error"
BUDGET = (
    "What the 95 % intervals are made of: half-widths, whose squares add up. Orange is what the "
    "scene declares, with its standard deviation beside its name; blue is what the observations "
    "and the model leave open."
)
BETWEEN = (
    "Between points the loss is interpolated: through all losses, and through the slopes where the "
    "search took a gradient."
)
SPARSE = "Dots have the colour of their loss. They are so few that nothing is drawn between them."
ROUNDING = 1e-12  # of the largest component
LISTED = 12  # weights of a direction
FILES = {
    "result.json": "the result as numbers",
    "parameters.npz": "the answer, its history and the spectrum of the Jacobian",
    "trajectory.npz": "the motion at the answer: nodes, and vertices of what is drawn",
    "certificate.json": "the gradient certificate",
    "coarse.npz": "the losses of the coarse set",
    "instances.csv": "every instance as a line",
    "study.toml": "the scene as it was run",
    "manifest.json": "machine, versions, hashes of the input files",
}


def write_report(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Draw the figures, also in these formats, and write the report; return the page's path."""
    names = run_folder.RESULT, run_folder.CERTIFICATE, run_folder.MANIFEST
    result, certified, manifest = map(folder.read_json, names)
    files = FigureFiles(folder, formats)
    log = read_search(folder, result["logs"][0])
    kind = result["verdict"]["kind"]
    if result["purpose"] == "control":  # many ways lead to a goal
        for row in result["parameters"]:
            row.pop("truth", None)
    seconds = log[-1].seconds if log else 0.0
    sections: list[Section | None] = [
        instances_section(files),
        control_section(result, log, files),
        _answer(files, result),
        *_looks(files, result),
        *_films(files),
        _motion(files),
        _fields(files),
        *_points(files, result),
        _convergence(files, result, log),
        _basins(files, result),
        _set_up(result, manifest, certified, files, seconds=seconds),
        section("Files", Links({k: what for k, what in FILES.items() if folder.has(k)})),
        provenance(folder, manifest),
    ]
    report = Report(
        title=result["title"],
        verdict=Headline(
            kind,
            "good" if Kind(kind).is_good else "bad",
            result["verdict"]["reason"],
            tuple(fit_warnings(result)),
        ),
        facts=_index_facts(folder, result, manifest),
        sections=tuple(each for each in sections if each is not None),
        chips=(
            f"loss {number(result['loss'], 0.1 * result['loss'])}",
            count(result["evaluations"], "evaluation"),
            f"{seconds:.0f} s of search",
            f"gradient certificate: {certificate.line(certified)}",
        ),
        thumbnail=THUMBNAIL if folder.has(THUMBNAIL) else "",
        numbers=_index_numbers(result, seconds),
    )
    return write_page(folder, report)


def _index_numbers(result: Mapping[str, Any], seconds: float) -> dict[str, Value]:
    """Return the numbers by which an index compares runs: single answers, loss and time."""
    rows = (row for row in result["parameters"] if row["count"] == 1)
    answers = {
        row["name"]: Value(
            row["estimate"],
            row["unit"].strip("-"),
            None if interval(row) == "none" else row["interval"],
        )
        for row in rows
    }
    return {**answers, "loss": Value(result["loss"]), "time": Value(seconds, "s")}


def _index_facts(
    folder: RunFolder, result: Mapping[str, Any], manifest: Mapping[str, Any]
) -> dict[str, str]:
    """Return what an index of runs says of one, by column."""
    answers = [
        f"{row['name']}: {row['count']} values"
        if row["count"] > 1
        else f"{row['name']} = {estimate(row)}{_unit(row)}"
        for row in result["parameters"][:3]
    ]
    if more := len(result["parameters"]) - len(answers):
        answers.append(f"and {more} more")
    return {
        "run": folder.path.name,
        "scene": str(manifest.get("name", manifest["study"])),
        "answer": "\n".join(answers),
        "started": str(manifest["started"]),
    }


def _answer(files: FigureFiles, result: dict[str, Any]) -> Section | None:
    notes = [] if result["purpose"] == "control" else _notes(result)
    others = [
        nuisance
        for nuisance in result.get("nuisances", [])
        if not nuisance["name"].startswith("cameras.")
    ]
    spectrum = {}
    if (values := files.folder.read_npz(run_folder.PARAMETERS)["singular_values"]).size > 1:
        spectrum["singular values"] = files.save("spectrum", figures.spectrum(values))
    return section(
        "The answer",
        answer_bars(result["parameters"]),
        _parameters_table(result["parameters"]),
        *(Text(text) for text in result["findings"]),
        *_budget(files, result),
        details("The numbers by which others compare", *_metrics(result)),
        _cameras(result.get("cameras", [])),
        details("Fitted beside it: start times, lights and looks", _parameters_table(others)),
        details("What the intervals rest on", *map(Text, notes), charts(spectrum)),
    )


def _budget(files: FigureFiles, result: Mapping[str, Any]) -> list[Block | None]:
    """Return what the intervals are made of: bars, and sentences that the verdict does not say."""
    budget = result.get("budget", {})
    drawn = {
        f"error budget of {label}": files.save(f"budget_{k + 1}", figures.budget(label, answer))
        for k, (label, answer) in enumerate(list(budget.items())[:SHOWN_PARAMETERS])
    }
    sentences = [answer["advice"] for answer in budget.values() if answer["advice"]]
    advice = [Text(text) for text in sentences if text not in result["verdict"]["reason"]]
    return [*advice, charts(drawn, BUDGET)]


def _metrics(result: Mapping[str, Any]) -> list[Block | None]:
    """Return tables of the field's metrics: of values whose truth is known, and of what moves."""
    values = [
        (row["name"], f"{row['log10_error']:.2g}" if "log10_error" in row else "",
         f"{row['error']:.2g}{_unit(row)}")
        for row in result["parameters"] if "error" in row
    ]  # fmt: skip
    heads = {
        "psnr": "PSNR [dB]", "ssim": "SSIM", "iou": "IoU of silhouettes",
        "error": "mean distance", "chamfer": "Chamfer distance [m]",
    }  # fmt: skip
    rows = result.get("metrics", [])
    kept = [key for key in heads if any(key in row for row in rows)]
    lines = [
        (row["of"], f"{row['frames']}{' held back' * row['held_back']}",
         *(f"{row[key]:.3g}" if key in row else "" for key in kept))
        for row in rows
    ]  # fmt: skip
    return [
        table(("number", "|log10| error", "error"), values),
        table(("what", "frames", *(heads[key] for key in kept)), lines),
    ]


def _parameters_table(rows: Sequence[Mapping[str, Any]]) -> Block | None:
    """Return what was found of each parameter, with its intervals; without empty columns."""
    lines = [_cells(dict(row)) for row in rows]
    heads = {name for cells in lines for name, text in cells.items() if text not in ("", "none")}
    lines = [{name: text for name, text in cells.items() if name in heads} for cells in lines]
    strong = (1, 2) if INTERVAL in heads else (1,)
    return table(lines[0] if lines else (), [cells.values() for cells in lines], strong)


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a parameter by the heads of their columns."""
    is_many, truth, error = row["count"] > 1, "", ""
    if "truth" in row:
        kind, size = truth_error(row)
        truth = number(row["truth"])
        error = f"{size}\nabsolute" if kind == "error" else size.replace(", ", "\n")
    about = f"\n{row['count']} values: mean, root mean square" if is_many else ""
    answer = f"{number(row['estimate'])}, {number(row['estimate_rms'])}" if is_many else ""
    verdict = f"\n{row['verdict']}" if row.get("verdict") else ""
    return {
        "parameter": f"{row['name']}{_unit(row, ' [', ']')}{about}",
        "answer": f"{answer or estimate(row)}{verdict}",
        INTERVAL: interval(row),
        "noise only": interval(row, "pixel_interval"),
        "start": number(row["start"]),
        "truth": truth,
        "relative error": error,
    }


def _unit(row: Mapping[str, Any], before: str = " ", after: str = "") -> str:
    return f"{before}{row['unit']}{after}" if row["unit"].strip("-") else ""


def _cameras(cameras: Sequence[Mapping[str, Any]]) -> Block | None:
    """Return cameras as they were declared and as they fit."""
    lines = []
    for camera in cameras:
        moved = (
            "-" if camera["moved"] is None else f"{camera['moved']:.2f} σ\nmost: {camera['most']}"
        )
        for kind, end in (("declared", ""), ("fitted", moved)):
            vectors = map(np.atleast_1d, camera[kind].values())
            lines.append([f"{camera['name']}, {kind}", *map(_vector, vectors), end])
    lens = "fov_y [deg]" if cameras and "fov_y" in cameras[0]["fitted"] else "focal [pixels]"
    return table(["camera", "eye [m]", "target [m]", lens, "moved by"], lines)


def _vector(values: np.ndarray) -> str:
    """Return numbers in words; one that is only rounding beside the largest is 0."""
    least = ROUNDING * np.abs(values).max()
    return ", ".join(f"{value:.4g}" if abs(value) > least else "0" for value in values)


def _notes(result: dict[str, Any]) -> list[str]:
    """Return what the intervals rest on."""
    spread = result["uncertainty"]
    notes = [f"No intervals: {spread['reason']}."]
    if not spread["reason"]:
        notes = [
            "The interval with model error allows for residuals that last from frame to frame, and "
            "for what changes when a part of the frames is left out. The other one counts noise "
            f"only ({spread['noise']:.2e}, estimated from the residuals), as if mesh, camera and "
            "material law were exact."
        ]
    if values := spread["singular_values"]:
        shown = f"from {values[0]:.3g} to {values[-1]:.3g}"
        ratio = "" if spread["condition"] is None else f"; condition {spread['condition']:.3g}"
        notes.append(f"Singular values of the Jacobian of the residuals: {shown}{ratio}.")
        if len(values) < result["n_parameters"]:
            notes.append("The smaller ones of so many parameters are not computed.")
    if spread.get("worst_direction") and len(values) > 1:
        parts = [f"{weight:.2f} {name}" for name, weight in spread["worst_direction"].items()]
        notes.append(f"This combination is determined worst: {', '.join(parts[:LISTED])}.")
    return notes


def _films(files: FigureFiles) -> Sections:
    """Yield a section for each film: film, answer and difference, and a strip of frames."""
    folder = files.folder
    more: list[Details | None] = []
    for k, film in enumerate(folder.read_json(FILMS)["films"] if folder.has(FILMS) else []):
        frames = folder.read_npz(film["frames"])
        strip = files.save(f"strip-{film['name']}", figures.compared(frames))
        media = Media(tuple(Item(**item) for item in film["items"]), wipe=True)
        compared = Media((Item(strip, "start, film, answer and difference", wide=True),))
        if k < MOST_FILMS:
            yield section(film["title"], media, details("Frames as they are compared", compared))
        else:
            more.append(details(film["title"], media, compared))
    yield section("More films and pictures", *more)


def _motion(files: FigureFiles) -> Section | None:
    """Return the bodies at the answer in space, over time."""
    folder = files.folder
    view = motion_view(folder.read_npz(run_folder.TRAJECTORY))
    if view is None:
        return None
    folder.write_json(MOTION, view)
    caption = "Drag to turn, or use the arrow keys; turn the wheel with Shift to come closer."
    if view["frames"] > 1:
        caption += " The flat shape behind is the first frame."
    if view["wires"]["count"]:
        caption += " Obstacles are lines, as they are declared."
    picture = THUMBNAIL if folder.has(THUMBNAIL) else ""
    return section(
        "The answer in space", Motion(MOTION, "the bodies at the answer", caption, picture)
    )


def _fields(files: FigureFiles) -> Section | None:
    """Return the fields among the answers as colours on their bodies."""
    folder = files.folder
    stored = folder.read_json(FILMS) if folder.has(FILMS) else {}
    items = []
    for k, (path, entry) in enumerate(stored.get("fields", {}).items()):
        images = folder.read_npz(entry["file"])
        file = files.save(f"field-{k + 1}", figures.field(images, entry, path))
        items.append(Item(file, path, wide=len(images) > 1))
    caption = "On the body as the scene has it; of several numbers at a place, their length."
    return section("Fields", Media(tuple(items), caption) if items else None)


def _looks(files: FigureFiles, result: dict[str, Any]) -> Sections:
    """Yield a section for each further figure of shapes and textures from pictures."""
    arrays = files.folder.read_npz(LOOKS) if result.get("looks") else {}
    for look in result.get("looks", []):
        rows = [list(row) for row in arrays[look["name"]]]
        figure = figures.pictures(rows, look["rows"], look["columns"], interpolation="nearest")
        item = Item(files.save(look["name"], figure), look["title"], wide=True)
        yield section(look["title"], Media((item,), look["caption"]))


def _points(files: FigureFiles, result: dict[str, Any]) -> Sections:
    """Yield a section for each observation of points: curves over time, and clouds."""
    for name in result["observations"]:
        if files.folder.has(f"points-{name}.npz"):
            arrays = files.folder.read_npz(f"points-{name}.npz")
            file = files.save(f"points-{name}", figures.points(arrays))
            text = "Dots were observed, lines are the answer."
            yield section(f"Points and answer: {name}", charts({f"points of {name}": file}, text))
        if files.folder.has(f"cloud-{name}.npz"):
            arrays = files.folder.read_npz(f"cloud-{name}.npz")
            item = Item(files.save(f"cloud-{name}", figures.cloud(arrays)), name, wide=True)
            text = "What was measured, over the surface of the answer; red is outside of it."
            yield section(f"Cloud and answer: {name}", Media((item,), text))


def _convergence(files: FigureFiles, result: Json, log: list[Evaluation]) -> Section | None:
    """Return the curves of the search; faint, those of other starts."""
    if not log:
        return None
    arrays = files.folder.read_npz(run_folder.PARAMETERS)
    if result["purpose"] == "control":
        arrays.pop("truth", None)
    others = [read_search(files.folder, names) for names in result["logs"][1:]]
    stages = {evaluation.stage: evaluation.spent for evaluation in log}
    ends = [*stages.values()][:-1]
    graded = [
        (evaluation.spent, evaluation.gradient_norm)
        for evaluation in log
        if evaluation.gradient_norm
    ]
    slopes = figures.curve(
        graded, "|gradient| in theta [-]", ends=ends, color=figures.GREEN, scale="log"
    )
    drawn = {
        "loss over evaluations": files.save("loss", figures.loss(log, others, ends)),
        "norm of the gradient": files.save("gradient_norm", slopes),
    }
    n_history = arrays["history"].shape[1]
    for k, row in enumerate(result["parameters"][:SHOWN_PARAMETERS]):
        name, is_many = f"parameter_{k + 1}", row["count"] > 1
        if is_many and len(arrays["history"]):
            drawn[row["name"]] = files.save(name, figures.many(arrays, row))
        elif not is_many and row["index"] is not None and row["index"] < n_history:
            drawn[row["name"]] = files.save(name, figures.parameter(arrays, row, ends))
    caption = (
        "Every evaluation, not the best so far. A forward sweep, one with its reverse sweep, and "
        "each tangent sweep count as one evaluation."
    )
    if files.folder.has(coarse.FILE):
        caption += (
            " The curves begin where the search that led to the answer began: the coarse set is "
            "not drawn, nor are other basins in the curves of the numbers."
        )
    if len(stages) > 1:
        spent = np.diff([0, *stages.values()])
        parts = [
            f"{name or 'search'} ({count(int(n), 'evaluation')})"
            for name, n in zip(stages, spent, strict=True)
        ]
        caption += (
            f" The search had {len(stages)} stages, with dashed lines between them: "
            f"{'; '.join(parts)}. The curve of losses breaks "
            "there: those of different stages compare different frames."
        )
    return section("Convergence", charts(drawn, caption))


def _basins(files: FigureFiles, result: dict[str, Any]) -> Section | None:
    """Return what the coarse set showed, and all optima."""
    drawn = None
    if files.folder.has(coarse.FILE):
        data = files.folder.read_json(coarse.FILE)
        named = zip(data["basins"], result["logs"], strict=False)
        searched = [
            read_search(files.folder, of_last_stage(names)) if basin["is_searched"] else []
            for basin, names in named
        ]
        truth = {row["name"]: row["truth"] for row in result["parameters"] if "truth" in row}
        file = files.save("coarse", coarse.coarse_figure(data, searched, truth))
        is_wide = len(data["labels"]) > 2
        item = Item(file, "losses of the coarse set", wide=is_wide, chart=not is_wide)
        caption = "" if is_wide else BETWEEN if coarse.says_between(data) else SPARSE
        drawn = Media((item,), caption)
    ranked = sorted(
        result["basins"], key=lambda basin: math.inf if basin["loss"] is None else basin["loss"]
    )
    names = list(result["basins"][0]["values"]) if ranked else []
    rows = []
    for basin in ranked:
        values = [number(basin["values"][name]) for name in names]
        loss = "not finite" if basin["loss"] is None else f"{basin['loss']:.3e}"
        ended = basin["status"].lower().replace("_", " ")
        rows.append(["answer" if basin["is_answer"] else "", *values, loss, ended])
    listed = table(["", *names, "loss", "its search"], rows) if len(rows) > 1 else None
    return section("Where the search looked", drawn, listed)


def _set_up(
    result: Json, manifest: Json, certified: Json, files: FigureFiles, *, seconds: float
) -> Section | None:
    described = []
    for name, observation in result["observations"].items():
        size = " of {} x {} pixels".format(*observation["size"]) if observation["size"] else ""
        described.append(f"{name}: {count(observation['frames'], 'frame')}{size}")
    ended = result["status"].lower().replace("_", " ")
    facts = {
        "command": manifest["command"],
        "what moves": result["what"],
        "observations": "; ".join(described),
        "time": _steps(result),
        "method": f"{result['method']}; loss: {result['loss_function']}",
        "search ended": f"{ended}: {result['message']} After {seconds:.1f} s.",
        "gradient certificate": certificate.line(certified),
    }
    return section(
        "Set-up",
        Facts({name: text for name, text in facts.items() if text}),
        certificate.folded(certified, result["status"], files),
    )


def _steps(result: dict[str, Any]) -> str:
    """Return number and size of the time steps; "" where nothing is rolled out."""
    if result["n_steps"] is None:
        return ""
    return f"{count(result['n_steps'], 'step')} of {result['dt']:.4g} s"


def provenance(folder: RunFolder, manifest: Mapping[str, Any]) -> Section | None:
    """Return the section that ends a report: machine, versions, and the study file."""
    machine, resumed = manifest["machine"], len(manifest["resumed"])
    again = f", resumed {count(resumed, 'time')}" if resumed else ""
    facts = {
        "precision": f"{manifest['dtype']} on {manifest['device']}, seed {manifest['seed']}",
        "started": f"{manifest['started']}{again}",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['system']}",
        "commit": manifest["commit"] or "not in a git repository",
    }
    versions = {name: version or "not installed" for name, version in manifest["versions"].items()}
    return section(
        "Machine and versions",
        Facts(facts),
        Details("Versions", (Facts(versions),)),
        Details("Study file", (Code(folder.read_study()),)),
    )
