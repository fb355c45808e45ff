"""One page about many runs: their verdicts and results, and what is wrong with some."""

import json
import re

import pytest

from studies.errors import StudyError
from studies.figures import make_axes, png
from studies.index_report import MARK, find_runs, write_index
from studies.report_parts import breakable, gallery, page, table, write_page
from studies.run_folder import RunFolder
from tests.studies.scans.toy import CUBE, run


MANIFEST = {
    "study": "beam", "command": "adjsim run beam", "started": "2026-01-01", "resumed": [],
    "machine": {"processor": "p", "cores": 2, "system": "s"}, "commit": None,
    "dtype": "float64", "device": "cpu", "seed": 7,
}  # fmt: skip
ROW = {
    "name": "beam.mu", "unit": "Pa", "count": 1, "start": 6e5, "estimate": 2e5,
    "interval": [1.9e5, 2.1e5], "pixel_interval": [1.99e5, 2.01e5],
}  # fmt: skip


def make_run(path, title=None, kind="found", manifest=MANIFEST):
    """Make what is left of a run: its manifest, its study, and with a title a report and result."""
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(
        manifest if isinstance(manifest, str) else json.dumps(manifest)
    )
    (path / "study.toml").write_text('study = "beam"\n')
    if title is not None:
        folder = RunFolder(path)
        verdict = {"kind": kind, "reason": f"Because of < 9 %, {kind}.", "numbers": {}}
        folder.write_json("result.json", {"verdict": verdict, "parameters": [ROW]})
        chips = [(kind == "found", kind), (None, "9 evaluations")]
        write_page(folder, title, chips, "<section>all of it</section>")
        figure, _ = make_axes(1, 1, (1.0, 1.0))
        folder.write_figures({"strip": png(figure), "other": png(figure)})
    return path.resolve()


def no_rebuild(folder):
    raise AssertionError("its report is there")


def unfinished(folder):
    raise StudyError(f"The run {folder.path} has no result.json yet.")


def test_the_index_has_the_verdict_of_every_run_and_links_to_its_report(tmp_path):
    one = make_run(tmp_path / "a run", "First")
    two = make_run(tmp_path / "deep" / "two", "Second & more", "several answers")
    path = write_index([one, two], None, no_rebuild)
    text = path.read_text()
    assert path == tmp_path / "index.html"
    assert 'href="a%20run/report.html"' in text
    assert 'href="deep/two/report.html"' in text
    assert "a run, seed 7" in text
    assert text.count('<span class="chip good">found</span>') == 2  # in the list, and with it
    assert text.count('<span class="chip bad">several answers</span>') == 2
    assert "Because of &lt; 9 %, several answers." in text
    assert "Second &amp; more" in text
    assert text.count("<b>190000 to 210000</b>") == 2
    assert text.count("<td>199000 to 201000</td>") == 2
    assert text.count("data:image/png") == 2  # the strip of each
    assert not re.findall(r'src="(?!data:)', text)
    again = write_index([one], path, no_rebuild)  # in its own place
    assert "Second" not in again.read_text()


def test_runs_that_are_broken_or_not_finished_are_listed_with_the_reason(tmp_path):
    good = make_run(tmp_path / "good", "Good")
    begun = make_run(tmp_path / "begun")
    scanned = make_run(tmp_path / "scanned")
    (scanned / "scan.json").write_text('{"scan": "figure-4a"}')
    torn = make_run(tmp_path / "torn", manifest='{"study": "be')
    bare = make_run(tmp_path / "bare", "Bare")
    (bare / "manifest.json").unlink()
    odd = make_run(tmp_path / "odd", "Odd")
    (odd / "report.json").write_text("[]")

    def rebuild(folder):
        folder.read_json("manifest.json")
        return unfinished(folder)

    text = write_index([good, begun, scanned, torn, bare, odd], None, rebuild).read_text()
    assert "5 without a report" in text
    assert "has no result.json yet" in text
    assert "is not valid JSON" in text
    assert "is not a run folder: it has no manifest.json" in text
    assert "It cannot be read: TypeError" in text
    assert "adjsim run beam" in text  # of the one that only began
    assert "begun, seed 7" in text
    assert ">scan figure-4a</a>" in text  # not by the study that is scanned


def test_nothing_of_a_run_becomes_markup(tmp_path):
    own = make_run(tmp_path / "evil", "<script>alert(2)</script>", "<img src=x onerror=alert(1)>")
    text = write_index([own], None, no_rebuild).read_text()
    assert "<script" not in text
    assert "<img src=x" not in text


def test_a_report_that_is_missing_is_written(tmp_path):
    own = make_run(tmp_path / "run")

    def rebuild(folder):
        return write_page(folder, "Rebuilt", [], "")

    assert "Rebuilt" in write_index([own], None, rebuild).read_text()


def test_galleries_are_listed(tmp_path):
    own = make_run(tmp_path / "many", "Many")
    shown = tmp_path / "gallery"
    shown.mkdir()
    figure, _ = make_axes(1, 1, (1.0, 1.0))
    text = page("What the renderer draws", [], gallery({"a mode": png(figure)}))
    (shown / "index.html").write_text(text)
    assert find_runs([tmp_path]) == [shown.resolve(), own]
    index = write_index([shown, own], tmp_path / "all.html", no_rebuild).read_text()
    assert 'href="gallery/index.html"' in index


def test_another_file_is_not_written_over(tmp_path):
    own = make_run(tmp_path / "run", "One")
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(StudyError, match="is not an index of `adjsim report`"):
        write_index([own], None, no_rebuild)
    assert (tmp_path / "index.html").read_text() == "mine"
    (tmp_path / "sub").mkdir()
    assert write_index([own], tmp_path / "sub", no_rebuild).name == "index.html"
    assert 'href="../run/report.html"' in (tmp_path / "sub" / "index.html").read_text()


def test_a_folder_without_runs_is_told(tmp_path, adjsim):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StudyError, match="is not a run folder, and has none in it"):
            find_runs([path])
    code, _, err = adjsim("report", tmp_path)
    assert code == 2
    assert "is not a run folder, and has none in it" in err
    code, _, err = adjsim("report", tmp_path / "absent")
    assert code == 2
    assert "is not a run folder" in err


def test_the_help_says_where_the_page_about_several_runs_is_written(adjsim):
    code, out, _ = adjsim("report", "--help")
    assert code == 0
    words = " ".join(re.sub(r"[^\w.,:-]+", " ", out).split())
    assert words.count("index.html in the folder that all of them lie in") == 2


def test_tables_wrap_on_screen_and_on_paper():
    style = page("A run", [], "").split("</style>")[0]
    assert style.count("nowrap") == 1  # of numbers: a column beyond the card is lost in print
    assert ".number { white-space: nowrap; }" in style
    on_paper = style.split("@media print")[1]
    assert ".scroll, pre { overflow: visible; }" in on_paper
    assert "pre { white-space: pre-wrap; overflow-wrap: anywhere; }" in on_paper


def test_a_long_name_may_break_between_its_words():
    assert breakable("floor.friction_stiffness") == "floor.<wbr>friction_<wbr>stiffness"
    assert breakable("a & b") == "a &amp; b"


def test_a_number_of_a_table_does_not_break_behind_its_minus():
    text = page("A run", [], table(["error", "of"], [["2.6e-11, at most 1e-9", "run-2"]]))
    for number in ("2.6e-11", "1e-9"):
        assert f'<span class="number">{number}</span>' in text
    assert "<td>run-2</td>" in text


def test_the_command_lists_scans_and_a_folder_of_runs(tmp_path, adjsim):
    folder, _ = run(tmp_path / "scan", "pushed-cube", CUBE, "mass=0.5:1.5:3")
    code, out, _ = adjsim("report", folder.path)
    assert code == 0
    assert out.splitlines()[-1] == str(folder.file("report.html"))
    folder.file("report.html").unlink()  # it is made again
    make_run(tmp_path / "other", "Other")
    code, out, err = adjsim("report", tmp_path)
    assert (code, out.strip()) == (0, str(tmp_path / "index.html")), err
    text = (tmp_path / "index.html").read_text()
    assert MARK in text
    assert "the lowest point is at the truth" in text
    assert 'href="scan/report.html"' in text
    assert "lowest point" in text
    code, out, _ = adjsim("report", tmp_path / "other", folder.path, "--out", tmp_path / "two.html")
    assert code == 0
    assert "2 runs" in (tmp_path / "two.html").read_text()
