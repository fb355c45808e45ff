"""One page about many runs: what their reports say, and what is wrong with some."""

import base64
import json
import re

import pytest

from studies.errors import StudyError
from studies.figures import make_axes, png
from studies.index_report import MARK, find_runs, write_index
from studies.report_parts import breakable, gallery, page, rows, table, wide
from studies.report_reader import read_page
from tests.studies.scans.toy import CUBE, run


PNG = base64.b64encode(b"\x89PNG of a toy").decode()
MANIFEST = {
    "study": "beam", "command": "adjsim run beam", "started": "2026-01-01", "resumed": [],
    "machine": {"processor": "p", "cores": 2, "system": "s"}, "commit": None,
    "dtype": "float64", "device": "cpu", "seed": 7,
}  # fmt: skip


def make_run(path, text=None, manifest=MANIFEST):
    """Make what is left of a run: its manifest, its study, and maybe its report."""
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(
        manifest if isinstance(manifest, str) else json.dumps(manifest)
    )
    (path / "study.toml").write_text('study = "beam"\n')
    if text is not None:
        (path / "report.html").write_text(text)
    return path.resolve()


def report_of(title, body="", film=""):
    """Return a report of the usual kind."""
    results = table(["parameter", "error"], [["<b>mass</b>", "1e-9"], ["friction &lt; 1", "2e-9"]])
    set_up = rows({"command": "adjsim run x", "precision": "float64 on cpu, seed 3",
                   "search took": "4.2 s"})  # fmt: skip
    more = table(["every"], [["one"]])
    return page(
        title,
        [(True, "converged"), (False, "certificate FAILED"), (None, "9 evaluations")],
        f"<section><h2>What was identified</h2>{results}{body}{film}"
        f"<details><summary>Every instance</summary>{more}</details></section>"
        f"<section><h2>Seen</h2>{wide(b'a', 'a strip')}"
        f"{gallery({'loss': b'b', 'more': b'c'})}</section>"
        f"<section><h2>Set-up</h2>{set_up}</section>",
    )


def no_rebuild(folder):
    raise AssertionError("its report is there")


def unfinished(folder):
    raise StudyError(f"The run {folder.path} has no result.json yet.")


def test_a_page_is_read_as_it_was_written():
    said = read_page(report_of("A mass & more"))
    assert said.title == "A mass & more"
    assert said.verdicts == [
        ("good", "converged"), ("bad", "certificate FAILED"), ("plain", "9 evaluations"),
    ]  # fmt: skip
    (found,) = said.results()
    assert found.rows == [["parameter", "error"], ["mass", "1e-9"], ["friction < 1", "2e-9"]]
    assert [one.what for one in said.media] == ["a strip", "loss", "more"]
    assert said.media[0].is_wide
    assert said.set_up()["search took"] == "4.2 s"


def test_the_index_tells_of_every_run_and_links_to_its_report(tmp_path):
    film = '<figure><video src="data:video/mp4;base64,AAAA"></video>'
    film += "<figcaption>target</figcaption></figure>"
    one = make_run(tmp_path / "a run", report_of("First", film=film))
    two = make_run(tmp_path / "deep" / "two", report_of("Second"))
    path = write_index([one, two], None, no_rebuild)
    text = path.read_text()
    assert path == tmp_path / "index.html"
    assert 'href="a%20run/report.html"' in text
    assert 'href="deep/two/report.html"' in text
    assert "a run, seed 3, 4.2 s" in text
    assert text.count(">converged</span>") == 4  # in the list, and with each
    assert text.count("data:image/png") == 4
    assert text.count('<video src="data:video/mp4;base64,AAAA"') == 1
    assert "<figcaption>target</figcaption>" in text
    assert not re.findall(r'src="(?!data:)', text)
    assert "Every instance" not in text
    again = write_index([one], path, no_rebuild)  # in its own place
    assert "Second" not in again.read_text()


def test_runs_that_are_broken_or_not_finished_are_told_and_lose_nothing(tmp_path):
    good = make_run(tmp_path / "good", report_of("Good"))
    begun = make_run(tmp_path / "begun")
    scanned = make_run(tmp_path / "scanned")
    (scanned / "scan.json").write_text('{"scan": "figure-4a"}')
    torn = make_run(tmp_path / "torn", manifest='{"study": "be')
    bare = make_run(tmp_path / "bare", report_of("Bare"))
    (bare / "manifest.json").unlink()
    binary = make_run(tmp_path / "binary")
    (binary / "report.html").write_bytes(b"\xff\xfe\xff")

    def rebuild(folder):
        folder.read_json("manifest.json")
        return unfinished(folder)

    text = write_index([good, begun, scanned, torn, bare, binary], None, rebuild).read_text()
    assert "5 without a report" in text
    assert "has no result.json yet" in text
    assert "is not valid JSON" in text
    assert "is not a run folder: it has no manifest.json" in text
    assert "It cannot be read: UnicodeDecodeError" in text
    assert "adjsim run beam" in text  # of the one that only began
    assert "begun, seed 7" in text
    assert ">scan figure-4a</a>" in text  # not by the study that is scanned


def test_nothing_of_a_page_is_run(tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)><td><b onclick=x>hm</b></td>"
    body = f'{evil}<img src="data:image/png;base64,AA" onerror="alert(1)">'
    body += '<img src="data:text/html;base64,AA">'
    own = make_run(tmp_path / "evil", report_of("<script>alert(2)</script>", body))
    text = write_index([own], None, no_rebuild).read_text()
    for word in ("<script", "onerror", "onclick", "text/html;base64"):
        assert word not in text.replace("&lt;script", "")


def test_a_report_that_is_missing_is_written(tmp_path):
    own = make_run(tmp_path / "run")

    def rebuild(folder):
        folder.write_text("report.html", report_of("Rebuilt"))
        return folder.file("report.html")

    assert "Rebuilt" in write_index([own], None, rebuild).read_text()


def test_many_rows_are_cut_and_galleries_listed(tmp_path):
    many = table(["k"], [[str(k)] for k in range(40)])
    own = make_run(tmp_path / "many", page("Many", [], f"<section><h2>All</h2>{many}</section>"))
    shown = tmp_path / "gallery"
    shown.mkdir()
    figure, _ = make_axes(1, 1, (1.0, 1.0))
    text = page("What the renderer draws", [], gallery({"a mode": png(figure)}))
    (shown / "index.html").write_text(text)
    assert find_runs([tmp_path]) == [shown.resolve(), own]
    index = write_index([shown, own], tmp_path / "all.html", no_rebuild).read_text()
    assert "28 more rows in the report" in index
    assert 'href="gallery/index.html"' in index
    assert 'alt="a mode"' in index


def test_another_file_is_not_written_over(tmp_path):
    own = make_run(tmp_path / "run", report_of("One"))
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
    said = read_page(f"<table><tr><td>{breakable('a.b_c')}</td></tr></table>")
    assert said.results()[0].rows == [["a.b_c"]]


def test_a_number_of_a_table_does_not_break_behind_its_minus():
    text = page("A run", [], table(["error", "of"], [["2.6e-11, at most 1e-9", "run-2"]]))
    for number in ("2.6e-11", "1e-9"):
        assert f'<span class="number">{number}</span>' in text
    assert "<td>run-2</td>" in text
    assert read_page(text).results()[0].rows[1] == ["2.6e-11, at most 1e-9", "run-2"]


def test_the_command_lists_scans_and_a_folder_of_runs(tmp_path, adjsim):
    folder, _ = run(tmp_path / "scan", "pushed-cube", CUBE, "mass=0.5:1.5:3")
    code, out, _ = adjsim("report", folder.path)
    assert code == 0
    assert out.splitlines()[-1] == str(folder.file("report.html"))
    folder.file("report.html").unlink()  # it is made again
    make_run(tmp_path / "other", report_of("Other"))
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
