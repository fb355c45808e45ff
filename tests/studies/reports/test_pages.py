"""Reports as data: the JSON, the page, the index of many."""

import json
import re
from dataclasses import replace

import pytest

from studies.reports.content import (
    Code,
    Facts,
    Headline,
    Item,
    Links,
    Media,
    Report,
    Text,
    Value,
    details,
    read_report,
    section,
    table,
)
from studies.reports.figures import FigureFiles, make_axes
from studies.reports.index import find_runs, write_index
from studies.reports.numbers import estimate, interval, number, truth_error
from studies.reports.page import MARK, breakable, render, write_report
from studies.reports.scene_run import _cells, _steps
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder


EVIL = '<script>alert("1")</script>'


def full(folder, *, title="A run", verdict="found", tone="good", text="because"):
    """Return a report with every kind of block, and write its picture."""
    figure, _ = make_axes(1, 1, (1.0, 1.0))
    file = FigureFiles(folder).save("loss", figure)
    return Report(
        title,
        Headline(verdict, tone, text, (text,)),
        {"run": folder.path.name, "answer": "beam.E = 252 300 Pa"},
        (
            section(
                text,
                Text(text),
                Facts({text: text}),
                table([text, "b"], [[f"{text}\nnote", 1], ["2", 3.5]], strong=(0,)),
                Media((Item(file, text, text, chart=True), Item(file, "b", wide=True)), text),
                details(text, Code(text), Links({text: text})),
            ),
        ),
        (text,),
        file,
        {"beam.E": Value(252300.0, "Pa", (243300.0, 261300.0)), "loss": Value(1e-3)},
    )


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "run")


def made(path):
    path.mkdir(parents=True)
    folder = RunFolder(path)
    folder.write_json("manifest.json", {"study": "scene", "verb": "run", "target": "x"})
    folder.write_text("study.toml", "")
    return folder


def no_rebuild(folder):
    raise AssertionError(f"the report of {folder.path} is there")


def test_a_report_is_the_same_after_json(folder):
    report = full(folder)
    write_report(folder, report)
    assert read_report(folder) == report
    assert json.loads((folder.path / "report.json").read_text())["verdict"]["text"] == "found"


def test_a_report_that_is_something_else_is_named(folder):
    folder.write_json("report.json", {"title": "A", "verdict": [1]})
    with pytest.raises(StudyError, match=r"report\.json is not a report: verdict"):
        read_report(folder)


def test_the_page_has_the_verdict_before_everything_and_its_pictures_in_it(folder):
    page = write_report(folder, full(folder, text="the reason")).read_text()
    body = page[page.index("<main>") :]
    places = [body.index(text) for text in ("<h1>A run", "found</h2>", "the reason", "<figure")]
    assert places == sorted(places)
    assert 'class="full verdict good"' in body
    assert not re.findall(r'(?:src|poster)="(?!data:)', page)
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "http" not in page


def test_only_a_good_verdict_is_green(folder):
    page = write_report(folder, full(folder, verdict="at a bound", tone="bad")).read_text()
    assert 'class="full verdict bad"' in page
    assert 'class="full verdict good"' not in page


def test_nothing_of_a_run_becomes_markup(folder):
    report = full(folder, title=EVIL, verdict=EVIL, text=EVIL)
    page = write_report(folder, report).read_text()
    assert page.count("<script>") == 1  # the page's own
    assert "alert(" in page
    assert '"1"' not in page.split("</style>")[1].split("<script>\nfor")[0]
    index = write_index([folder.path], None, no_rebuild).read_text()
    assert index.count("<script>") == 1
    assert "<script>alert" not in index


def test_a_picture_that_is_missing_is_named(folder):
    media = Media((Item("a.png", ""),))
    report = Report("A", Headline("found", "good"), sections=(section("B", media),))
    with pytest.raises(StudyError, match="is missing"):
        write_report(folder, report)


def test_files_outside_of_the_run_are_refused(folder):
    (folder.path.parent / "secret.png").write_bytes(b"1")
    write_report(folder, Report("A", Headline("found", "good"), thumbnail="../secret.png"))
    index = write_index([folder.path], None, no_rebuild).read_text()
    assert "leads out of the run folder" in index


def test_figures_are_written_in_further_formats(folder):
    figure, _ = make_axes(1, 1, (1.0, 1.0))
    assert FigureFiles(folder, ("pdf", "png")).save("loss", figure) == "figures/loss.svg"
    assert (folder.path / "figures/loss.pdf").read_bytes().startswith(b"%PDF")
    assert (folder.path / "figures/loss.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder.path / "figures/loss.svg").read_bytes()


# The index


def test_the_index_reads_the_data_and_links_to_the_pages(tmp_path):
    runs = []
    for name, verdict, tone in (("a run", "found", "good"), ("deep/two", "several answers", "bad")):
        folder = made(tmp_path / name)
        write_report(folder, full(folder, title=name, verdict=verdict, tone=tone, text="why"))
        folder.write_text("report.html", "not read")
        runs.append(folder.path)
    path = write_index(runs, None, no_rebuild)
    text = path.read_text()
    assert path == tmp_path / "index.html"
    assert 'href="a%20run/report.html"' in text
    assert 'href="deep/two/report.html"' in text
    assert text.count('<span class="chip good">found</span>') == 1
    assert text.count('<span class="chip bad">several answers</span>') == 1
    assert text.count("data:image/svg") == 2
    heads = re.findall(r'data-name="([\w.]+)"', text)
    assert heads == ["title", "verdict", "beam.E", "loss", "run"]
    assert text.count("<td>252\u202f300\xa0Pa<br><small>± 3.6 %</small></td>") == 2
    assert MARK in write_index(runs[:1], path, no_rebuild).read_text()  # in its own place


def test_numbers_that_runs_share_are_axes_and_others_stay_in_the_answer(tmp_path):
    runs = []
    for k, more in enumerate(({}, {"beam.nu": Value(0.3)}, {"ball.mass": Value(2.0, "kg")})):
        folder = made(tmp_path / f"run{k}")
        report = full(folder, text=EVIL)
        numbers = report.numbers if k < 2 else {"loss": Value(0.5)}
        facts = {"run": EVIL, "answer": "\n".join(f"{name} = 1" for name in (*numbers, *more))}
        write_report(folder, replace(report, facts=facts, numbers={**numbers, **more}))
        runs.append(folder.path)
    text = write_index(runs, None, no_rebuild).read_text()
    data = text.split('<script id="data" type="application/json">')[1].split("</script>")[0]
    plot = json.loads(data)
    assert plot["names"] == ["beam.E", "loss", "time"]
    assert plot["runs"][0]["numbers"] == {
        "beam.E": [252300.0, 243300.0, 261300.0, "Pa"], "loss": [1e-3, ""],
    }  # fmt: skip
    assert plot["runs"][2]["numbers"] == {"loss": [0.5, ""]}
    cells = text.split("<tbody>")[1].replace("<wbr>", "")
    assert "ball.mass = 1" in cells
    assert "beam.nu = 1" in cells
    assert "beam.E = 1" not in cells


def test_runs_of_the_same_title_are_told_apart(tmp_path):
    manifest = dict.fromkeys(
        ("study", "verb", "target", "command", "dtype", "device", "started"), ""
    )
    manifest |= {"toml": "", "commit": None, "seed": 1, "resumed": []}
    manifest |= {key: {} for key in ("depends_on", "versions", "machine")}
    runs = [made(tmp_path / name) for name in ("one/beam-001", "two/beam-001")]
    for folder, overrides in zip(runs, (None, ["search.max_evaluations=3"]), strict=True):
        write_report(folder, full(folder))
        folder.write_json("manifest.json", manifest | {"arguments": {"overrides": overrides}})
    paths = [folder.path for folder in runs]
    text = write_index(paths, tmp_path, no_rebuild).read_text().replace("<wbr>", "")
    assert "<small>one/beam-001</small>" in text
    assert "<small>two/beam-001, search.max_evaluations=3</small>" in text
    assert "beam-001</small>" not in write_index(paths[:1], tmp_path, no_rebuild).read_text()


def test_runs_that_cannot_be_read_are_listed_with_the_reason(tmp_path):
    good = made(tmp_path / "good")
    write_report(good, full(good))
    begun = made(tmp_path / "begun")
    torn = made(tmp_path / "torn")
    (torn.path / "report.json").write_text('{"title": "be')
    (torn.path / "report.html").write_text("")

    def unfinished(folder):
        raise StudyError(f"The run {folder.path} has no result.json yet.")

    text = write_index([good.path, begun.path, torn.path], None, unfinished).read_text()
    assert "has no result.json yet." in text.replace("<wbr>", "")
    assert "torn/report.json" in text.replace("<wbr>", "")
    assert text.count('<span class="chip bad">no report</span>') == 2


def test_a_report_that_is_missing_is_written(tmp_path):
    folder = made(tmp_path / "run")

    def rebuild(folder):
        return write_report(folder, full(folder, title="Rebuilt"))

    assert "Rebuilt" in write_index([folder.path], None, rebuild).read_text()


def test_another_file_is_not_written_over(tmp_path):
    folder = made(tmp_path / "run")
    write_report(folder, full(folder))
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(StudyError, match="is not an index of `adjsim report`"):
        write_index([folder.path], None, no_rebuild)
    assert (tmp_path / "index.html").read_text() == "mine"
    (tmp_path / "sub").mkdir()
    index = write_index([folder.path], tmp_path / "sub", no_rebuild)
    assert index == tmp_path / "sub" / "index.html"
    assert 'href="../run/report.html"' in index.read_text()


def test_a_folder_without_runs_is_an_error(tmp_path, adjsim):
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(StudyError, match="is not a run folder, and has none in it"):
            find_runs([path])
    code, _, err = adjsim("report", tmp_path)
    assert (code, "is not a run folder, and has none in it" in err) == (2, True)
    code, _, err = adjsim("report", tmp_path / "absent", "--figures", "svg")
    assert (code, "`--figures` must be pdf or png" in err) == (2, True)


# Texts


def test_a_long_name_may_break_between_its_words():
    assert breakable("floor.friction_stiffness") == "floor.<wbr>friction_<wbr>stiffness"
    assert breakable("a & b") == "a &amp; b"
    assert breakable("3.6 % of 2.5e-11") == "3.6 % of 2.5e-11"


def test_what_is_in_backticks_is_code():
    assert breakable("set `a<b`, `x.y`.") == ("set <code>a&lt;b</code>, <code>x.<wbr>y</code>.")
    assert breakable("one ` alone") == "one ` alone"


@pytest.mark.parametrize(
    ("value", "uncertainty", "text"),
    [
        (252269.57, 8951.0, "252\u202f300"),
        (0.123456, 0.012, "0.123"),
        (2.5e9, 1.2e8, "2.50 × 10⁹"),
        (-3.21e-7, 4e-9, "-3.210 × 10⁻⁷"),
        (1.0, 0.3, "1.00"),
        (0.0, 0.01, "0.000"),
        (0.0, None, "0"),
        (600000.0, None, "600\u202f000"),
        (0.25, None, "0.25"),
        (1.25e-5, None, "1.25 × 10⁻⁵"),
        (float("inf"), None, "not finite"),
    ],
)
def test_a_number_has_two_digits_of_its_uncertainty(value, uncertainty, text):
    assert number(value, uncertainty) == text


def test_an_interval_has_the_digits_of_its_width():
    row = {"estimate": 252269.57, "interval": [243477.4, 261379.3], "pixel_interval": None}
    assert estimate(row) == "252\u202f300"
    assert interval(row) == "243\u202f500 to 261\u202f400\n± 3.6 %"
    assert interval(row, "pixel_interval") == "none"
    assert interval({"estimate": 1.0, "interval": [1.0 - 1e-9, 1.0 + 1e-9]}) == "± 1e-09 of it"
    assert interval({"estimate": 2e5, "interval": [2e5 - 1e-10, 2e5]}) == "within rounding"


def test_a_value_that_is_small_against_its_interval_has_no_percent():
    assert interval({"estimate": 0.01, "interval": [-0.03, 0.05]}) == "-0.030 to 0.050"
    assert interval({"estimate": 0.0, "interval": [-0.04, 0.04]}) == "-0.040 to 0.040"


def test_a_value_keeps_three_digits_beside_a_wide_interval_and_none_beyond_its_bounds():
    row = {"estimate": -0.36718, "interval": [-0.8, 0.1]}
    assert estimate(row) == "-0.367"
    row = {"estimate": 1234.56, "interval": [800.0, 1700.0], "bounds": [0.0, 5000.0]}
    assert (estimate(row), interval(row)) == ("1\u202f230", "800 to 1\u202f700\n± 38 %")
    wide = {"estimate": -0.36718, "interval": [-3.5e5, 3.5e5], "bounds": [-5.0, 5.0]}
    assert (estimate(wide), interval(wide)) == ("-0.36718", "none")


def test_a_template_that_lacks_a_value_fails():
    with pytest.raises(Exception, match="undefined"):
        render("index", title="Runs")


# Damaged folders


def test_a_run_that_is_not_finished_is_named(folder, adjsim):
    assert "has no result.json" in adjsim.refused("report", folder.path)


def test_a_result_that_holds_something_else_is_named(folder, adjsim):
    for name in ("result.json", "certificate.json"):
        folder.write_json(name, {"other": 1})
    err = adjsim.refused("report", folder.path)
    assert "has files that do not hold what a report needs (KeyError" in err


def test_an_error_of_a_number_near_zero_is_in_its_unit():
    row = {"count": 1, "estimate": 0.31, "truth": 0.001, "relative_error": 309.0, "unit": "m/s"}
    assert truth_error(row) == ("error", "0.31 m/s")
    assert _cells({**row, "name": "v", "start": 1.0})["relative error"] == "0.31 m/s\nabsolute"
    assert truth_error({**row, "relative_error": 0.02}) == ("relative error", "2.0e-02")


def test_a_set_up_names_no_steps_where_nothing_is_rolled_out():
    assert _steps({"n_steps": None, "dt": None}) == ""
    assert _steps({"n_steps": 1, "dt": 0.1}) == "1 step of 0.1 s"
