"""Pages of runs of each kind in a browser: none wider than its window, none that shuts people out.

They need Chromium; that on accessibility axe-core as well: `AXE` is the path of its `axe.min.js`.
That on the manual needs the folder in which it was built: `MANUAL`.
"""

import os
import threading
from pathlib import Path

import pytest
import tomlkit

from studies.reports.preview.editing import Editor
from studies.reports.preview.page import PageServer
from tests.chromium import CHROMIUM, page
from tests.studies.command import adjsim
from tests.studies.control.toys import TOYS
from tests.studies.datasets import toy as datasets
from tests.studies.fitting.twins import tables
from tests.studies.scans.toy import CONTACT


pytestmark = pytest.mark.skipif(not CHROMIUM, reason="needs Chromium")
AXE, MANUAL = os.environ.get("AXE"), os.environ.get("MANUAL")
KINDS = [
    "report", "inspect", "instances", "control", "scan", "map", "dataset", "index", "preview",
]  # fmt: skip
# How far the page reaches beyond its window, and what does, but for what scrolls in its own box.
BEYOND = """
document.querySelectorAll("details").forEach(one => { one.open = true; });
const wide = document.documentElement.clientWidth, reach = document.documentElement.scrollWidth;
const inside = ".scroll, .wide, pre";
reach <= wide ? [] : [reach - wide, ...[...document.querySelectorAll("body *")]
  .filter(one => one.getBoundingClientRect().right > wide && !one.closest(inside))
  .map(one => one.outerHTML.slice(0, 120))];
"""
# Cells that unfold fade in, and are pale until then.
SERIOUS = """
document.getAnimations().forEach(one => one.finish());
axe.run({resultTypes: ["violations"]}).then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes.map(node => node.html.slice(0, 120)).join(" ")}`));
"""
INK = """(() => {
  const canvas = document.querySelector("canvas.space");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return data.reduce((sum, value, k) => (sum + value * (k % 97)) % 1e9, 0);
})()"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """Return the addresses of a page of each kind."""
    root = tmp_path_factory.mktemp("pages")
    falls, swings = root / "falls.toml", root / "swings.toml"
    falls.write_text(CONTACT)
    truth = {"rod.length": {"between": [0.95, 1.05]}}
    swings.write_text(tomlkit.dumps(tables(truth=truth, instances=2)))
    runs = {kind: root / "runs" / kind for kind in KINDS[:-2] if kind != "inspect"}
    few = "search.max_evaluations=3"
    mass = "body.mass=1:4:3"
    commands = {
        "report": ("run", falls),
        "instances": ("run", swings),
        "control": ("run", "control-cloth", *TOYS["control-cloth"], few),
        "scan": ("scan", falls, "--over", mass),
        "map": ("scan", falls, "--over", mass, "--over", "floor.stiffness=400:600:3"),
        "dataset": ("dataset", datasets.SCENE, *datasets.TOY, "--count", 2),
    }
    for kind, command in commands.items():
        adjsim.done(*command, "--out", runs[kind])
    adjsim.done("inspect", runs["report"])
    adjsim.done("report", root / "runs", "--out", root / "index.html")
    server = PageServer(Editor(falls))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = {kind: run / "report.html" for kind, run in runs.items()}
    pages |= {"inspect": runs["report"] / "inspect.html", "index": root / "index.html"}
    yield {kind: path.as_uri() for kind, path in pages.items()} | {"preview": server.address}
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tab():
    """Return a page of one Chromium."""
    with page() as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_is_wider_than_its_window(addresses, tab, kind):
    for theme in ("light", "dark"):
        tab.set_theme(theme)
        for width in (400, 1280):
            tab.open(addresses[kind], width)
            assert tab.run(BEYOND) == [], (theme, width)


@pytest.mark.skipif(not AXE, reason="needs AXE in the environment")
@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_serious_fault_of_accessibility(addresses, tab, kind):
    for theme in ("light", "dark"):
        tab.set_theme(theme)
        tab.open(addresses[kind])
        tab.run(BEYOND)
        tab.run(Path(AXE).read_text())
        assert tab.run(SERIOUS) == [], theme


@pytest.mark.skipif(not MANUAL, reason="needs MANUAL in the environment")
def test_no_page_of_the_manual_is_wider_than_its_window_or_has_a_serious_fault(tab):
    faults = {}
    for theme in ("light", "dark"):
        tab.set_theme(theme)
        for file in sorted(set(Path(MANUAL).rglob("*.html")) - set(Path(MANUAL).glob("_*/**/*"))):
            for width in (400, 1280):
                tab.open(file.resolve().as_uri(), width)
                faults[file.name, theme, width] = tab.run(BEYOND)
            if AXE:
                tab.run(Path(AXE).read_text())
                faults[file.name, theme] = tab.run(SERIOUS)
    assert {place: fault for place, fault in faults.items() if fault} == {}


def test_bodies_are_drawn_turned_and_played(addresses, tab):
    tab.open(addresses["report"])
    view = "JSON.parse(document.querySelector('.motion script').textContent)"
    assert tab.run(f"{view}.wires.count") > 0  # the floor
    last = tab.run(INK)
    tab.run(
        "document.querySelector('canvas.space').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowLeft'}))"
    )
    assert tab.run(INK) != last
    tab.run("document.querySelector('.motion button').click()")
    tab.run("new Promise(done => setTimeout(done, 2600))")
    assert tab.run("document.querySelector('.motion button').textContent") == "Pause"
    assert tab.run("document.querySelector('.motion figure').checkVisibility()") is False


def test_without_scripts_a_picture_stands_for_the_bodies(addresses, tab):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(addresses["report"])
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert tab.run("document.querySelector('canvas.space').checkVisibility()") is False
    said = tab.run("document.querySelector('.motion figure').innerText")
    assert "where the browser runs scripts" in said
    assert tab.run("document.querySelector('.motion img').naturalWidth") > 0
