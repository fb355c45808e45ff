"""The report of a comparison of control: a table, raw curves, last pictures, videos."""

import base64
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies import certificate_report, run_folder
from studies.certificate import verdict_of
from studies.control import figures, results
from studies.instances import place
from studies.instances_report import failed_table
from studies.report_parts import (
    FACES_SWAP,
    counted,
    gallery,
    image,
    provenance,
    rows,
    run_facts,
    table as html_table,
    wide,
    write_page,
)
from studies.run_folder import RunFolder


MEANINGS = {
    "rise": "how far the centre of mass is above where it began",
    "distance": "the distance between the centre of mass at the end and that of the state that the "
    "target was drawn of",
    "cover": "how well the last picture covers the target (intersection over union)",
}
TOLD = {
    "picture": "was told the picture alone",
    "states": "was told in 3-D where the centre of mass shall be, at the frames of the picture",
    "random": "was drawn at random, as many times as the others evaluate; the best by the picture",
}


def write_report(folder: RunFolder) -> Path:
    """Draw the figures and write `report.html`; return its path.

    Raises
    ------
    StudyError
        If the run is not finished.
    """
    result = folder.read_json(run_folder.RESULT)
    if "records" not in result:  # a single search by the picture
        from studies.report import write_report as write_fit_report

        return write_fit_report(folder)
    _, certified, manifest = folder.finished()
    kinds, records = result["kinds"], result["records"]
    pictures = [
        folder.read_npz(f"{place(one['instance'])}/{run_folder.POLICIES}") for one in records
    ]
    drawn = {
        "curves": figures.curves(records, kinds, result["bars"]),
        "ends": figures.ends(pictures, kinds, [_titles(one) for one in records]),
    }
    points = {
        kind: certificate_report.named_points(_status(result, kind), one)
        for kind, one in certified["kinds"].items()
    }
    sweeps = {
        kind: {
            f"{name}_{kind}": data
            for name, data in certificate_report.drawn(points[kind], one).items()
        }
        for kind, one in certified["kinds"].items()
    }
    for images in (drawn, *sweeps.values()):
        folder.write_figures(images)
    body = [
        _table_section(result),
        _videos_section(folder, result),
        _curves_section(result, drawn["curves"]),
        _ends_section(result, drawn["ends"]),
        *(
            certificate_report.section(
                points[kind], sweeps[kind], FACES_SWAP, schedule=one.get("schedule"), of=kind
            )
            for kind, one in certified["kinds"].items()
        ),
        f"<section>\n<h2>Set-up</h2>\n{rows(_facts(result, manifest))}\n</section>",
        provenance(folder, manifest),
    ]
    return write_page(folder, result["title"], _verdicts(result, certified), "\n\n".join(body))


def _verdicts(result: dict[str, Any], certified: dict[str, Any]) -> list[tuple[bool | None, str]]:
    """Return what is said first: whether the bars are held, and the certificate."""
    held: list[tuple[bool | None, str]] = []
    first = result["table"][0]
    for name, (ours, _) in result["bars"].items():
        mean = first[name]["mean"]
        is_held = mean >= ours if results.MEASURES[name].is_gain else mean <= ours
        held.append((is_held, f"{first['kind']}: mean {name} {mean:.3g}{_unit(name)}"))
    if certified["kinds"]:
        held.append(certificate_report.verdict(verdict_of(certified)))
    instances = counted(result["instances"], "instance")
    if failed := result.get("failed"):
        instances += f", {len(failed)} failed"
    return [*held, (None, instances), (None, f"at most {result['evaluations']} evaluations each")]


def _table_section(result: dict[str, Any]) -> str:
    names = results.measures_of(result["records"])
    head = ["supervision"]
    for name in names:
        more = ["last", "nearest"] if results.MEASURES[name].is_length else []
        unit = f" [{_unit(name).strip()}]" if _unit(name) else ""
        head += [f"mean {name}{unit}", "median", "worst", *more]
    head.append("seconds")
    lines = []
    for row in result["table"]:
        cells = [cell for name in names for cell in _cells(row[name], name)]
        lines.append([f"<b>{html.escape(row['kind'])}</b>", *cells, f"{row['seconds']:.2f}"])
    told = "; ".join(f"<b>{row['kind']}</b> {TOLD[row['kind']]}" for row in result["table"])
    failed = failed_table(result.get("failed", []), result["instances"])
    return f"""<section>
<h2>How near they end</h2>
{failed}<div class="scroll">{html_table(head, lines)}</div>
<p>Measured are {", ".join(MEANINGS[name] for name in names[:-1])}, and {MEANINGS[names[-1]]}, over
{counted(len(result["records"]), "instance")}. What each search returns is its evaluation of the
lowest loss; "last" is the mean {names[0]} of its last evaluation, and "nearest" that of the best
one, which no search knows; "seconds" are those of the median evaluation. {told}.{_bars(result)}</p>
</section>"""


def _cells(stats: dict[str, Any], name: str) -> list[str]:
    """Return the numbers of a measure in a row of the table."""
    if results.MEASURES[name].is_length:
        return [f"{stats[key]:.2g}" for key in ("mean", "median", "worst", "last", "nearest")]
    return [f"{stats[key]:.3f}" for key in ("mean", "median", "worst")]


def _unit(name: str) -> str:
    """Return the unit behind a number."""
    unit = results.MEASURES[name].unit
    return f" {unit}" if unit else ""


def _bars(result: dict[str, Any]) -> str:
    """Return what the means are held against, as a sentence."""
    parts = []
    for name, (ours, published) in result["bars"].items():
        limit = "at least" if results.MEASURES[name].is_gain else "at most"
        squares = ", a mean square over the coordinates in m²" if name == "distance" else ""
        known = "" if published is None else f"; gradSim published {published:g}{squares}"
        asked = f"{limit} {ours:g}{_unit(name)}"
        parts.append(f" This project asks for a mean {name} of {asked}{known}.")
    return "".join(parts)


def _videos_section(folder: RunFolder, result: dict[str, Any]) -> str:
    still = image(folder.file(run_folder.TARGET_PICTURE).read_bytes())
    parts = [f'<figure><img src="{still}" alt="target"><figcaption>target</figcaption></figure>']
    for kind in result["kinds"]:
        data = base64.b64encode(folder.file(results.video(kind)).read_bytes()).decode()
        parts.append(
            f'<figure><video src="data:video/mp4;base64,{data}" controls loop muted autoplay '
            f"playsinline></video><figcaption>{html.escape(kind)}</figcaption></figure>"
        )
    which = f", number {result['shown']}" if result["instances"] > 1 else ""
    return f"""<section>
<h2>Target and motions</h2>
<div class="pair">
{"".join(parts)}
</div>
<p>The instance that ends worst by the first kind of supervision{which}.</p>
</section>"""


def _beside(result: dict[str, Any], data: bytes, alt: str) -> str:
    """Return a figure with a column for each kind of supervision; one fits on a phone."""
    return wide(data, alt) if len(result["kinds"]) > 1 else gallery({alt: data})


def _curves_section(result: dict[str, Any], data: bytes) -> str:
    dotted = " Dotted, what this project asks for." if result["bars"] else ""
    return f"""<section>
<h2>Convergence</h2>
{_beside(result, data, "measures over evaluations")}
<p>Every evaluation of every instance with its own distance, not the best so far; bold, their
median while all run.{dotted}</p>
</section>"""


def _ends_section(result: dict[str, Any], data: bytes) -> str:
    measures = " and ".join(results.measures_of(result["records"]))
    return f"""<section>
<h2>Last pictures</h2>
{_beside(result, data, "last pictures of every instance under each supervision")}
<p>The last picture of what each search returns, with its {measures}; the line is the
outline of the target.</p>
</section>"""


def _titles(record: dict[str, Any]) -> dict[str, str]:
    names = results.measures_of([record])
    return {
        kind: f"{kind}: {', '.join(_short(results.chosen(one, name), name) for name in names)}"
        for kind, one in record["searches"].items()
    }


def _short(value: float, name: str) -> str:
    """Return a measure as it stands above a picture."""
    return f"{value:.3g} m" if results.MEASURES[name].is_length else f"{value:.2f}"


def _status(result: dict[str, Any], kind: str) -> str:
    """Return how the search ended whose end is certified."""
    by_number = {record["instance"]: record for record in result["records"]}
    return by_number[result["shown"]]["searches"][kind]["status"]


def _taken(result: dict[str, Any], kind: str) -> str:
    """Return how many evaluations the searches of a kind took, from the fewest to the most."""
    spent = [record["searches"][kind]["spent"][-1] for record in result["records"]]
    return f"{min(spent)} to {max(spent)}" if min(spent) < max(spent) else f"{spent[0]}"


def _facts(result: dict[str, Any], manifest: Mapping[str, Any]) -> dict[str, str]:
    height, width = result["size"]
    searches = (one for record in result["records"] for one in record["searches"].values())
    return {
        "command": manifest["command"],
        "what moves": result["what"],
        "free numbers": f"{result['n_parameters']}",
        "target": f"{counted(len(result['frames']), 'picture')} of {height} x {width} pixels "
        "(height x width), RGBA",
        "time": f"{result['frames'][-1]} steps of {result['dt']:g} s",
        "method": f"{result['method']}, {result['loss_function']} for pictures",
        "evaluations taken": ", ".join(f"{k} {_taken(result, k)}" for k in result["kinds"]),
        "search took": f"{sum(one['seconds'] for one in searches):.1f} s",
        **run_facts(manifest),
    }
