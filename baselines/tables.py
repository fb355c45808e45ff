"""The instances of a table, as a network sees them, and what it guesses as a row of the table.

`adjsim run table1` draws instances of a study by its seed. A network that is to stand in that table
learns from a data set `instances` of the same study: same settings, so that masses, contacts,
poses and the known force are drawn alike, and another seed, so that it has seen none of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baselines.training import KEPT_BACK
from baselines.videos import Videos, as_shown
from studies import config, run_folder
from studies.datasets import study_scenes
from studies.datasets.spec import Spec, read_spec
from studies.errors import StudyError
from studies.instances import FAILURES
from studies.media import as_uint8
from studies.paper.tables.more_rows import Row, guess_record, write_row
from studies.paper.tables.report import write_report
from studies.paper.tables.table import Case, Scene
from studies.paper.tables.tasks import find_table
from studies.registry import RunOptions, find_study
from studies.report_parts import counted
from studies.rigid import PATHS
from studies.run_folder import RunFolder


UNSEEN = ("instances", "free", "start", "bounds", "loss", "optimizer")  # in no video
KIND = "instances"  # of the data set
LABELS = {"cnn": "CNN", "convlstm": "ConvLSTM"}


@dataclass(frozen=True, eq=False)
class Judged:
    """The instances of a table that a network is judged by.

    Attributes
    ----------
    folder : RunFolder
        Of the table's run.
    cases : list of Case
        The instances that could be drawn.
    """

    folder: RunFolder
    cases: list[Case]

    def videos(self, like: Videos, every: int) -> Videos:
        """Return the instances' videos as a data set keeps them, to guess the same of them."""
        shown = [as_shown(as_uint8(case.problem.targets), every) for case in self.cases]
        truth = [_truth(case) for case in self.cases]
        values = np.array([[one[PATHS[name]] for name in like.names] for one in truth])
        scenes = np.array([case.k for case in self.cases])
        return Videos(np.stack(shown), values, like.names, like.units, scenes)

    def add(self, row: Row, guessed: np.ndarray, videos: Videos) -> str:
        """Write a network's guesses, (n, n_targets), into the table's folder; return the CSV."""
        paths = [PATHS[name] for name in videos.names]
        records = [
            guess_record(case, row.name, dict(zip(paths, own, strict=True)))
            for case, own in zip(self.cases, guessed, strict=True)
        ]
        return write_row(self.folder, row, records)

    def report(self) -> Path:
        """Write the table's report again, with the rows that were added."""
        return write_report(self.folder)


def table_row(record: dict[str, Any], result: dict[str, Any]) -> Row:
    """Return how a network stands in a table: what it was trained on, and for how long."""
    name, kept = record["network"], result["train"] // KEPT_BACK
    return Row(
        name,
        LABELS[name],
        f"A network of {record['weights']} weights that looks at {result['frames']} frames. It was "
        f"trained on {result['train']} videos of the same study, drawn by the settings of this "
        f"table and by seed {result['seed']}, which is not the table's (data set "
        f"{result['checksum'][:12]}): {record['epochs']} epochs in {record['seconds']:.0f} s on "
        f"{counted(record['threads'], 'thread')} of the CPU, by PyTorch "
        f"{result['versions']['torch']}. Its weights are those of epoch {record['best'] + 1}, the "
        f"best on {kept} of the videos that were kept back. So it knows from what range hidden "
        "values are drawn, which a search is not told.",
    )


def _truth(case: Case) -> Mapping[str, Any]:
    assert case.fit.truth is not None
    return case.fit.truth.values


def read_table(run: Path, dataset: Path) -> Judged:
    """Return the instances of a table's run, if a data set is drawn like them.

    Parameters
    ----------
    run : pathlib.Path
        The folder of a finished `adjsim run table1` or `table2`.
    dataset : pathlib.Path
        Of `adjsim dataset instances`, with the study of the table.

    Raises
    ------
    StudyError
        If the run is none of a table or not finished, the data set is of other scenes, or both
        have one seed: then what is judged was learned from.
    """
    folder = RunFolder.open(run)
    manifest = folder.read_json(run_folder.MANIFEST)
    name = manifest["study"]
    study = find_study(name)
    if not study.module.startswith("studies.paper.tables."):
        raise StudyError(f"`--table` must be a run of table1 or table2, got one of `{name}`.")
    if not folder.has(run_folder.RESULT):
        raise StudyError(
            f"{run} is not finished: go on with `adjsim run {name} --out {run} --resume`."
        )
    settings = config.resolve(str(folder.file(run_folder.STUDY))).values
    options = RunOptions(**{key: manifest[key] for key in ("seed", "dtype", "device")})
    spec = read_spec(RunFolder.open(dataset))
    scene = _scene(name, settings, spec, options)
    cases = [Case(settings, scene, options, k) for k in range(settings["count"])]
    return Judged(folder, list(_drawable(cases)))


def _drawable(cases: list[Case]) -> Iterator[Case]:
    """Yield the instances that have a video; others failed in the table too."""
    for case in cases:
        try:
            _ = case.fit
        except FAILURES:
            continue
        yield case


def _scene(name: str, settings: dict[str, Any], spec: Spec, options: RunOptions) -> Scene:
    """Return the scene of the table that the data set is drawn like."""
    if spec.settings.kind != KIND:
        raise StudyError(
            f"`--table` needs a data set drawn like the table, got one of `{spec.settings.kind}`. "
            f"Make one: {_command(name, settings, options)}."
        )
    study = spec.settings.values["study"]
    scene = next((one for one in find_table(name).scenes if one.study == study), None)
    if scene is None:
        raise StudyError(
            f"`--table`: the data set is of `{study}`, which is no scene of {name}. Make one: "
            f"{_command(name, settings, options)}."
        )
    own, table = (
        config.flatten({key: value for key, value in values.items() if key not in UNSEEN})
        for values in (
            study_scenes.study_values(spec.settings.values),
            scene.resolved(settings).values,
        )
    )
    for key, value in table.items():
        if own[key] != value:
            raise StudyError(
                f"`--table`: the data set is drawn with {key} = {own[key]!r}, the table with "
                f"{value!r}. Make one like it: {_command(name, settings, options)}."
            )
    if spec.options.seed == options.seed:
        raise StudyError(
            f"`--table`: data set and table have the seed {options.seed}, so that what is judged "
            f"was learned from. Make one of another: {_command(name, settings, options)}."
        )
    return scene


def _command(name: str, settings: dict[str, Any], options: RunOptions) -> str:
    """Return the command that makes a data set for the first scene of a table."""
    scene = find_table(name).scenes[0]
    command = f"adjsim dataset instances study={scene.study} --seed {options.seed + 1}"
    if given := settings[scene.name]["settings"]:
        listed = ", ".join(f'"{one}"' for one in given)
        command += f" 'settings=[{listed}]'"
    return f"`{command}`"
