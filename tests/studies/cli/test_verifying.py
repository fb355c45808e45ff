"""`adjsim verify` as a user meets it: the table, JSON, and the exit status."""

import json
import sys
from dataclasses import replace

import pytest

from adjoint.verify.coverage import Coverage, check_system, verify
from studies.cli import main as cli, verifying


@pytest.fixture
def command(monkeypatch, capsys):
    """Call the command in this process; return exit status and stdout."""

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["adjsim", "verify", *args])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0, capsys.readouterr().out

    return call


def test_a_system_is_checked_and_told_as_a_table(command):
    code, told = command("loss/mse")
    assert code == 0
    cells = check_system("loss/mse").cells
    lines = [line for line in told.splitlines() if line.startswith("loss/mse")]
    assert len(lines) == len(cells)
    assert all(line.rstrip().endswith("pass") for line in lines)
    assert f"{len(cells)} checked, 0 failed" in told


def test_the_same_as_json(command):
    code, told = command("loss/mse", "--json")
    assert code == 0
    found = json.loads(told)
    assert found["passed"] is True
    (cell,) = check_system("loss/mse").cells
    (mine,) = found["cells"]
    assert {**mine, "seconds": 0.0} == {**cell.to_dict(), "seconds": 0.0}


def test_what_fails_or_is_missing_is_named_and_ends_with_1(command, monkeypatch):
    (cell,) = check_system("loss/mse").cells
    bad = replace(cell, slope=1.0, reason="Taylor: slope 1.000 below 1.9")
    for found, line in (
        (Coverage((bad,), ()), "FAIL: Taylor: slope 1.000 below 1.9"),
        (Coverage((cell,), ("Springs.damping",)), "not covered: Springs.damping"),
    ):
        monkeypatch.setattr(verifying, "verify", lambda *_, found=found, **__: found)
        code, told = command()
        assert code == 1
        assert line in told
        code, told = command("--json")
        assert code == 1
        assert json.loads(told)["passed"] is False


def test_an_unknown_system_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["adjsim", "verify", "los/mse"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "Did you mean `loss/mse`" in capsys.readouterr().err


def test_one_system_starts_no_process(monkeypatch):
    monkeypatch.setattr("adjoint.verify.coverage.ProcessPoolExecutor", None)
    assert verify("loss/mse", processes=2).passed
