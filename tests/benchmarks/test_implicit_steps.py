"""The comparison of implicit with semi-implicit steps, at a size that takes no time."""

import typer
from typer.testing import CliRunner

from benchmarks.implicit_steps import compare


def test_it_prints_a_row_for_each_stiffness():
    app = typer.Typer()
    app.command()(compare)
    result = CliRunner().invoke(app, ["--cells", "2,1,1", "--moduli", "1e4", "--joints", "1e3"])
    assert result.exit_code == 0, result.output
    rows = result.output.splitlines()[3:]
    assert [row.split("|")[1].strip() for row in rows] == ["E 10000 Pa", "joints 1000 N/m"]
