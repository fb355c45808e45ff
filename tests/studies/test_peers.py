"""Other packages beside ours: those that are installed compute what we compute."""

import shutil
import sys

import pytest

from studies import peers
from studies.gallery import making
from studies.gallery.entries import ENTRIES
from studies.gallery.others import OTHERS
from studies.peers import PEERS, Peer, racing


NAMED = {entry.name: entry for entry in ENTRIES}
TABLE = {"sizes": [100], "faces": 320, "pixels": 128}


# What other packages warn of is theirs to mend.
theirs = pytest.mark.filterwarnings("ignore")


def skip_without(problem):
    if problem:
        pytest.skip(problem)


@theirs
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_an_installed_package_moves_the_same_block_or_covers_the_same_pixels(peer, monkeypatch):
    skip_without(peer.missing() or peer.trouble())
    monkeypatch.setattr(racing, "PEERS", (peer,))
    monkeypatch.setattr(racing, "FAILED", {})
    laps, races = racing.peer_laps({"peer": TABLE, "renderer": True}, threads=2, seed=0)
    assert racing.FAILED == {}
    assert len(races) == 1
    assert len(laps) == (1 if races[0].run.gradient is None else 2)
    races[0].compare()
    assert races[0].difference is not None
    assert races[0].agrees
    assert peer.version is not None
    if races[0].run.grad_mu is not None:
        assert races[0].grad_difference < 1e-2


@theirs
@pytest.mark.parametrize("name", ["hard", "vertex-colors", "normals", "posed"])
@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_an_installed_package_draws_the_same_picture(other, name):
    module = other.load()
    skip_without(module.missing())
    one = NAMED[name].make((60, 80))
    picture = making.compare(one.draw(), module.draw(one))
    # Mitsuba takes random samples in a pixel; the others differ where a centre is on an edge.
    assert picture.differing < (0.3 if other.name == "Mitsuba" else 0.005)
    assert picture.median < 1e-5 or other.name in ("VTK", "Mitsuba")
    assert picture.median < 0.5 / 255.0 + 1e-9  # VTK rounds to 8 bits


@theirs
@pytest.mark.parametrize(("name", "most"), [("softmax", 0.06), ("softmax-wide", 0.01)])
def test_the_soft_blend_of_pytorch3d_is_ours_at_most_pixels(name, most):
    other = next(other for other in OTHERS if other.name == "PyTorch3D")
    skip_without(other.load().missing())
    one = NAMED[name].make((120, 160))
    picture = making.compare(one.draw(), other.load().draw(one))
    # The gamma of the paper makes much of how deep a face is beside itself.
    assert picture.median < 1e-6
    assert picture.differing < most


def test_a_version_is_found_by_what_is_imported():
    peer = Peer("Picture library", "none", peers.IMAGES, ("PIL",), "pip install pillow", "")
    assert peer.version == __import__("PIL").__version__
    assert Peer("Nobody", "none", peers.TETS, ("no_such_module",), "", "").version is None


def test_a_trial_that_aborts_says_how_and_what_is_needed(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    peer = Peer("Fragile", "none", peers.IMAGES, ("sys",), "install LLVM", "", may_abort=True)
    assert peer.missing() is None
    assert peer.trouble() == "its trial ended with 1; it needs: install LLVM"


def test_a_package_that_fails_is_named_and_the_others_are_timed(monkeypatch):
    class Broken(Peer):
        def load(self):
            raise RuntimeError("no such symbol")

    monkeypatch.setattr(racing, "PEERS", (Broken("Broken", "none", peers.TETS, ("sys",), "", ""),))
    monkeypatch.setattr(racing, "FAILED", {})
    assert racing.peer_laps({"peer": TABLE, "renderer": True}, 1, 0) == ([], [])
    assert racing.FAILED == {"Broken": "fails here: RuntimeError: no such symbol"}
    (told,) = racing.find_peers()
    assert told["missing"] == "fails here: RuntimeError: no such symbol"
