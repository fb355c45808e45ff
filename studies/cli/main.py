"""The command `adjsim`. What a command needs is imported when it is run."""

import gc
import io
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from studies.cli.settings_help import SettingsCommand, listed
from studies.cli.warming import compiling_beside
from studies.runs.allocation import keep_freed_memory
from studies.runs.blas import limit_before_loading


if TYPE_CHECKING:
    from studies.runs.folder import RunFolder
    from studies.runs.pool import Pool
    from studies.runs.starting import Job


LONGEST = 2000  # characters of a line of a message: of longer ones the middle is left out
NO_MEMORY, USER_ERROR, INTERRUPTED, TERMINATED = 1, 2, 130, 143

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Simulation and rendering with hand-derived, proven gradients.",
)
# Compilers and figures make objects by the million, few of them garbage: looking for it as often as
# Python does by default takes a twentieth of a run.
COLLECT_EVERY = 20_000, 20, 50
# The commands that say themselves how to go on, and what their folders are called.
FOLDERS = {"run": "run", "scan": "scan", "dataset": "data set"}
_shows_traceback = False
_if_interrupted = "Interrupted."  # what is still to be said of a Ctrl-C
Scheduler = Annotated[
    str | None,
    Option(
        help="Where items of work run: local:N, in N processes on this machine; serial, one after "
        "the other; or tcp://HOST:PORT, on the workers of a Dask scheduler. Default: on this "
        "machine's cores."
    ),
]
Checkpoint = Annotated[
    str | None,
    Option(
        metavar="SIZE",
        help="What the states of a reverse sweep may take, e.g. 500MB, or all; the others are "
        "computed again. It costs time and changes no number, so --resume may give another. "
        "Default: 1GB.",
    ),
]
Resume = Annotated[
    bool, Option("--resume", help="Go on with what is in --out; begin where nothing is.")
]
Device = Annotated[str | None, Option(metavar="cpu|cuda", help="Default: cpu.")]
Dtype = Annotated[str | None, Option(metavar="float64|float32", help="Default: float64.")]


def _folder_name(text: str) -> Path:
    if not text.strip() or not text.isprintable():
        raise typer.BadParameter(f"it must name a folder, got {text!r}.")
    return Path(text)


def _out(text: str) -> Any:
    return Option(parser=_folder_name, metavar="DIR", help=text)


def _keys(text: str) -> Any:
    return Argument(metavar="KEY=VALUE", help=text)


SceneName = Annotated[str, Argument(help="A bundled scene by name, or a TOML file.")]
Overrides = Annotated[list[str] | None, _keys("Keys of the scene, e.g. bodies.duck.E=2e5.")]


@app.callback()
def options(
    ctx: typer.Context,
    *,
    traceback: Annotated[
        bool, Option("--traceback", help="Show where in the code an error was raised.")
    ] = False,
) -> None:
    """Simulation and rendering with hand-derived, proven gradients."""
    global _shows_traceback, _if_interrupted  # noqa: PLW0603
    _shows_traceback = traceback
    when = " before anything was written" if ctx.invoked_subcommand in FOLDERS else ""
    _if_interrupted = f"Interrupted{when}."


@app.command("list")
def list_studies() -> None:
    """List scenes, studies, bundled scans and data sets, one line each."""
    print(listed())


@app.command(cls=SettingsCommand)
def run(  # noqa: PLR0913 -- the options of a command
    scene: Annotated[str, Argument(help="A scene by name (see list), or a TOML file.")],
    overrides: Annotated[
        list[str] | None,
        _keys(
            "Keys, e.g. bodies.beam.mu=2e5; `adjsim run SCENE --help` shows all of a scene. How "
            "well you know what you declare: bodies.beam.scale_error=0.005 for half a percent of "
            "its size, and also mass_error, position_error, obstacles.NAME.distance_error and "
            "tilt_error, world.gravity_error, observations.NAME.fps_error."
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, _out("Run folder; by default the next free runs/SCENE-NNN.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    seed: Annotated[
        int | None, Option(help="Seed of noise and of all that is drawn. Default: 0.")
    ] = None,
    checkpoint: Checkpoint = None,
    no_certificate: Annotated[
        bool, Option("--no-certificate", help="Skip the check of the gradient at the end.")
    ] = False,
    blind: Annotated[
        bool,
        Option(
            "--blind",
            help="Take what is simulated for footage: only the report knows the truth, after the "
            "verdict.",
        ),
    ] = False,
    scheduler: Scheduler = None,
    resume: Resume = False,
    json: Annotated[
        bool,
        Option(
            "--json",
            help="Print result.json, or instances.json of several, and all else on standard error.",
        ),
    ] = False,
) -> None:
    """Run a scene: search, judge, certify, report."""
    options = {"seed": seed, "dtype": dtype, "device": device, "checkpoint": checkpoint}
    options["blind"] = blind or None  # None: as before
    options["certificate"] = False if no_certificate else None  # None: as before, or by default
    with (
        redirect_stdout(sys.stderr) if json else nullcontext(),
        _pool("run", scene, scheduler, device, overrides=overrides) as (pool, carry_out),
    ):
        from studies.fitting.running import start_scene
        from studies.runs.folder import INSTANCES, RESULT
        from studies.scene.files import find_scene

        path = find_scene(scene)
        started = start_scene(path, overrides or [], out, options, spread=pool, resume=resume)
        carry_out(started)
    if json:
        folder = started[0]
        name = INSTANCES if folder.has(INSTANCES) else RESULT
        print(folder.file(name).read_text("utf-8"), end="")


def _begin(text: str, *, everywhere: bool = False) -> None:
    """Say on a terminal what begins, before the seconds that importing and reading take."""
    if everywhere or sys.stderr.isatty():
        print(f"{text} ...", file=sys.stderr, flush=True)


def _say_that_it_compiles() -> bool:
    """Say so before the minutes of a first run in which nothing else is said."""
    from adjsim.jit import backend, kernel_pack

    compiled = any(backend.CACHE_DIR.rglob("*.nbc"))  # folders are there once a module is loaded
    is_cold = not backend.JIT_DISABLED and not compiled and kernel_pack.open_pack() is None
    if is_cold:
        print(
            "Kernels are compiled on first use, in about a minute, and kept in "
            f"{backend.CACHE_DIR}.",
            file=sys.stderr,
            flush=True,
        )
    return is_cold


@contextmanager
def _pool(
    verb: str,
    target: str,
    scheduler: str | None,
    device: str | None,
    *,
    overrides: Sequence[str] | None = (),
) -> Iterator[tuple["Pool", Callable[[tuple["RunFolder", "Job"]], None]]]:
    """Give the pool of a command, and what carries out a job in its folder."""
    _begin(f"reading {target} and looking at it for the first time")
    from adjsim.jit import devices
    from studies.runs.errors import StudyError
    from studies.runs.pool import open_pool

    is_cold = _say_that_it_compiles()

    def carry_out(started: tuple["RunFolder", "Job"]) -> None:
        """Run to the end; where Ctrl-C ends it before, say how to go on."""
        global _if_interrupted  # noqa: PLW0603
        folder, job = started
        print(f"{FOLDERS[verb]} folder: {folder.path}", flush=True)
        _if_interrupted = ""
        try:
            print(job.run(folder))
        except KeyboardInterrupt:
            again = f"adjsim {verb} {shlex.quote(target)} --out {shlex.quote(str(folder.path))}"
            again += " --resume"
            again += "" if scheduler is None else f" --scheduler {shlex.quote(scheduler)}"
            print(
                f"\nInterrupted. What was computed is kept. Go on with:\n  {again}", file=sys.stderr
            )
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if not devices.is_of_gpu(error):
                raise
            raise StudyError(
                f"The GPU failed: {error} What was computed is kept. Go on without a GPU, with "
                f"numbers that agree to rounding: `{folder.how_to_go_on()} --device cpu`."
            ) from error
        finally:
            folder.release()

    is_helped = is_cold and verb == "run" and device in (None, "cpu")
    helped = compiling_beside(target, overrides or []) if is_helped else nullcontext()
    with open_pool(scheduler, device=device or "cpu") as pool, helped:
        try:
            yield pool, carry_out
        except Exception as error:
            if not devices.is_of_gpu(error):
                raise
            text = f"The GPU failed: {error} Add `--device cpu` to go on without one."
            raise StudyError(text) from error


@app.command(cls=SettingsCommand)
def scan(  # noqa: PLR0913 -- the options of a command
    study: Annotated[
        str,
        Argument(
            metavar="SCENE",
            help="A scene or a bundled scan by name (see list), or a TOML file of either.",
        ),
    ],
    overrides: Annotated[
        list[str] | None, _keys("Keys of the scene, as `adjsim run` takes.")
    ] = None,
    *,
    over: Annotated[
        list[str] | None,
        Option(
            help="An axis, once for each: KEY=START:STOP:NUM, or with :log behind it. KEY is a "
            "value by its path, in its own unit, e.g. beam.mu=1e5:4e5:31 or "
            "'ball.velocity[0]=-1:1:21', or a number of the scene file."
        ),
    ] = None,
    at: Annotated[
        str | None,
        Option(
            metavar="truth|start|RUN",
            help="Where the rest is held: at the truth, at the start of the search, or at the "
            "answer of the run in folder RUN. Default: the truth where observations are simulated.",
        ),
    ] = None,
    trust: Annotated[
        bool | None,
        Option(help="Compare the gradient with differences at every point. Default: yes."),
    ] = None,
    out: Annotated[
        Path | None, _out("Folder; by default the next free runs/scan-NAME-NNN.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    seed: Annotated[int | None, Option(help="As of `adjsim run`. Default: 0.")] = None,
    checkpoint: Checkpoint = None,
    scheduler: Scheduler = None,
    resume: Resume = False,
) -> None:
    """Scan the loss landscape of a scene: loss and gradient on a grid."""
    given = {"scan": study, "overrides": overrides, "over": over, "at": at, "trust": trust}
    given |= {"seed": seed, "dtype": dtype, "device": device, "checkpoint": checkpoint}
    with _pool("scan", study, scheduler, device) as (pool, carry_out):
        from studies.scans import scanning

        carry_out(scanning.start(given, out, pool, resume=resume))


@app.command(cls=SettingsCommand)
def dataset(  # noqa: PLR0913 -- the options of a command
    name: Annotated[
        str | None, Argument(help="A scene that draws something: bundled, or a TOML file.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        _keys("E.g. bodies.duck.E=2e5; `adjsim dataset SCENE --help` shows a bundled scene."),
    ] = None,
    *,
    count: Annotated[int | None, Option(help="Scenes. Default: 1000.")] = None,
    out: Annotated[
        Path | None, _out("Folder; by default the next free runs/dataset-NAME-NNN.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    seed: Annotated[int | None, Option(help="Scene k follows from it and k. Default: 0.")] = None,
    resume: Resume = False,
    verify: Annotated[
        Path | None, Option(metavar="DIR", help="Check the checksums of a data set instead.")
    ] = None,
    scheduler: Scheduler = None,
) -> None:
    """Make a data set: videos of random scenes, in HDF5 shards."""
    from studies.datasets import generating
    from studies.runs.errors import StudyError

    if verify is not None:
        good, lines = generating.verify(verify)
        print("\n".join(lines))
        raise typer.Exit(0 if good else 1)
    if name is None:
        raise StudyError(
            "Name a scene file, or a bundled scene that draws something, such as `rigid-contact`; "
            "or check a data set that is there: `adjsim dataset --verify DIR`."
        )
    given = {"name": name, "overrides": overrides, "count": count}
    given |= {"seed": seed, "dtype": dtype, "device": device}
    with _pool("dataset", name, scheduler, device) as (pool, carry_out):
        carry_out(generating.start(given, out, pool, resume=resume))


@app.command()
def verify(
    name: Annotated[
        str | None, Argument(help="One system, or a group of them, e.g. tets or loss/mse.")
    ] = None,
    *,
    json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check every gradient now, system by parameter."""
    _begin(f"checking {name or 'all systems'}", everywhere=True)
    from studies.cli.verifying import verify_command

    if not verify_command(name, as_json=json):
        raise typer.Exit(1)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        Argument(
            help="A run folder: its report is rebuilt. Several, or a folder of runs: one "
            "page about all of them, index.html in the folder that all of them lie in."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        Option(
            help="The page about several runs, *.html, or a folder for its index.html. "
            "Default: the folder that all of them lie in."
        ),
    ] = None,
    figures: Annotated[
        str | None, Option(metavar="pdf|png", help="Write the figures of a run as PDF or PNG too.")
    ] = None,
) -> None:
    """Rebuild the report of a run, or write an index of many.

    A run is what `adjsim run`, `adjsim scan` or `adjsim dataset` left.
    """
    _begin("drawing the report")
    from studies.cli.rebuilding import rebuild
    from studies.reports.index import FORMATS, find_runs, is_run, write_index
    from studies.runs.errors import StudyError
    from studies.runs.folder import RunFolder

    if figures not in (None, *FORMATS):
        raise StudyError(f"`--figures` must be {' or '.join(FORMATS)}, got {figures!r}.")
    if len(runs) == 1 and out is None and (is_run(runs[0]) or not runs[0].is_dir()):
        print(rebuild(RunFolder.open(runs[0]), (figures,) if figures else ()))
        return
    if figures:
        raise StudyError("`--figures` needs a single run folder.")
    print(write_index(find_runs(runs), out, rebuild))


@app.command()
def view(
    run: Annotated[Path, Argument(help="A run folder.")],
    *,
    screenshot: Annotated[
        Path | None, Option(help="Write a PNG instead of opening a window.")
    ] = None,
) -> None:
    """Show a run in 3-D."""
    from studies.reports.view import view_run
    from studies.runs.errors import StudyError
    from studies.runs.folder import SCAN, SPEC, RunFolder

    folder = RunFolder.open(run)
    for name, what in ((SPEC, "data set"), (SCAN, "scan")):
        if folder.has(name):
            raise StudyError(
                f"{run} holds a {what}, not one motion; open {run}/report.html instead."
            )
    view_run(folder, screenshot)
    if screenshot is not None:
        print(screenshot.resolve())


@app.command("inspect")
def inspect_adjoint(
    run: Annotated[Path, Argument(help="The folder of a run whose scene moves.")],
    *,
    at: Annotated[
        str,
        Option(
            metavar="start|answer",
            help="At the start of the search, or at its answer, where a good fit has no gradient.",
        ),
    ] = "start",
) -> None:
    """Show what makes the gradient of a run: its adjoint, step by step and force by force."""
    _begin(f"looking at the gradient of {run}, step by step")
    from studies.fitting.inspecting import inspect_run

    files, lines = inspect_run(run, at)
    print(*lines, *files, sep="\n")


@app.command()
def new(  # noqa: PLR0913 -- the options of a command
    file: Annotated[Path, typer.Argument(help="The scene file to write, NAME.toml.")],
    *,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="NAME", help="A bundled scene, with its comments."),
    ] = None,
    film: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A film, a folder of PNG frames, or a photograph; of `from-views` each view.",
        ),
    ] = None,
    mesh: Annotated[
        str | None,
        typer.Option(
            help="Of the body: a file, or ball, box, sheet, chain, shape:NAME, from-views, ..."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="soft|cloth|rigid|springs|pendulum",
            help="What the body is. Default: by its mesh.",
        ),
    ] = None,
    points: Annotated[
        str | None, typer.Option(help="Tracked points: CSV, C3D, or text of Tracker.")
    ] = None,
    cloud: Annotated[
        str | None, typer.Option(help="Points in space: a folder of PLY, PCD or CSV, or a file.")
    ] = None,
    depth: Annotated[
        str | None, typer.Option(help="A depth film: a folder of 16-bit PNG, or NPZ.")
    ] = None,
    urdf: Annotated[str | None, typer.Option(help="A robot, in place of `--mesh`.")] = None,
) -> None:
    """Write a scene file to begin with: of what there is, or of a bundled scene.

    \b
    you have                            adjsim new my.toml ...
    a film of something soft            --film clip.mp4 --mesh part.stl --kind soft
    a thing that bounces: how soft      --film clip.mp4 --mesh ball --kind soft
    a thing that bounces: how fast      --film clip.mp4 --mesh ball --kind rigid
    a film of a cloth                   --film clip.mp4 --mesh sheet --kind cloth
    a film of a pendulum                --film clip.mp4 --kind pendulum
    a rigid body that slides, tumbles   --film clip.mp4 --mesh box --kind rigid
    films from all around, no mesh      --film a.mp4 --film b.mp4 ... --mesh from-views
    a photograph of a thing that hangs  --film photo.jpg --mesh part.stl --kind soft
    photographs of a known thing        --from camera, --from light, --from texture
    pictures of a shape, all around     --from shape
    markers, tracked points             --points track.csv --mesh part.stl --kind rigid
    clouds of a scanner                 --cloud scans --mesh part.stl --kind soft
    a film of a depth camera            --depth frames --mesh part.stl --kind soft
    a colour to follow in a film        --points clip-track.csv --mesh ball --kind rigid
    force and displacement of a test    --from tensile-test, --from indentation
    two bodies that touch               --from two-balls, --from draped-cloth
    a grip that moves a soft thing      --from folded-towel
    a robot, as a URDF file             --urdf arm.urdf
    an arm, a chain or a hinge          --from links
    a goal in place of a film           --from control-fem
    """  # noqa: D301 -- Click's mark of lines that stay as they are
    _begin(f"looking at what {file} is made of")
    from studies.cli.new_scene.command import new_command
    from studies.scene.declared import FROM_VIEWS

    others = {"points": points, "cloud": cloud, "depth": depth, "urdf": urdf}
    if mesh == FROM_VIEWS:
        from studies.cli.new_scene.views import new_from_views

        beside = [name for name, text in {"from": start, **others}.items() if text is not None]
        if beside:
            raise ValueError(f"`--{beside[0]}` must be left out beside `--mesh {FROM_VIEWS}`.")
        print("\n".join(new_from_views(file, film or [], kind)))
        return
    if film and len(film) > 1:
        raise ValueError(
            f"`--film` must be given once, got {len(film)} films. Begin with one of them, and copy "
            "its tables [cameras.NAME] and [observations.NAME] for each of the others. Of a body "
            f"without a mesh give all of them, and `--mesh {FROM_VIEWS}`."
        )
    things = {"film": film[0] if film else None, "mesh": mesh, "kind": kind, **others}
    print("\n".join(new_command(file, start, things)))


@app.command(cls=SettingsCommand)
def preview(
    scene: SceneName,
    overrides: Overrides = None,
    *,
    out: Annotated[
        Path | None, Option(help="The picture; by default SCENE-preview.png, here.")
    ] = None,
    page: Annotated[
        bool, Option("--page", help="Set the scene up by looking, in a page on this machine.")
    ] = False,
) -> None:
    """Show a scene at its start values beside its films, and say what looks wrong."""
    _begin(f"drawing {scene}")
    _say_that_it_compiles()
    if page:
        from studies.reports.preview.page import serve_page
        from studies.runs.errors import StudyError

        if out is not None:
            raise StudyError("`--out` is the file of the picture, and `--page` makes none.")
        serve_page(scene, overrides or [])
        return
    from studies.reports.preview.showing import preview as draw
    from studies.runs.errors import StudyError
    from studies.scene.files import find_scene

    path = find_scene(scene)
    picture = out or Path(f"{path.stem}-preview.png")
    if picture.suffix.lower() != ".png":
        raise StudyError(f"`--out` must end in .png, got {picture}: write --out {picture}.png.")
    picture.parent.mkdir(parents=True, exist_ok=True)
    for line in draw(path, picture, overrides or [], say=print):
        print(f"warning: {line}", file=sys.stderr)
    print(picture.resolve())


@app.command(cls=SettingsCommand)
def check(
    scene: SceneName,
    overrides: Overrides = None,
    *,
    json: Annotated[bool, Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print what the observations of a scene can determine, before any search."""
    _begin(f"looking at what the observations of {scene} determine")
    _say_that_it_compiles()
    from studies.cli.checking import check_command
    from studies.scene.files import find_scene

    check_command(find_scene(scene), overrides or [], as_json=json)


@app.command()
def track(  # noqa: PLR0913 -- the options of a command
    film: Annotated[Path, Argument(help="A film, or a folder of PNG frames.")],
    *,
    color: Annotated[
        str | None, Option(metavar="'R G B'", help="Track this colour; numbers from 0 to 1.")
    ] = None,
    background: Annotated[
        bool, Option("--background", help="Track what differs from what most frames show.")
    ] = False,
    tolerance: Annotated[
        float,
        Option(
            help="Difference in red, green or blue up to which a pixel is like the colour, where "
            "white is 1. Raise it until the whole of it is marked in the picture, lower it where "
            "something else is."
        ),
    ] = 0.15,
    hue: Annotated[
        bool | None,
        Option(
            "--hue/--no-hue",
            help="Whether the colour counts in any light, as on the shaded side of a body. By "
            "default it does, unless it is a grey within the tolerance.",
            show_default=False,
        ),
    ] = None,
    frames: Annotated[
        str | None, Option(metavar="'FIRST END'", help="Frames; END is left out.")
    ] = None,
    region: Annotated[
        str | None,
        Option(metavar="'U0 V0 U1 V1'", help="Look only between these columns and rows."),
    ] = None,
    fps: Annotated[
        float | None, Option(help="Frames per second; by default from the file.")
    ] = None,
    point: Annotated[str, Option(help="Name of the point in the table.")] = "point",
    out: Annotated[Path | None, Option(help="The table; by default FILM-track.csv, here.")] = None,
    force: Annotated[bool, Option("--force", help="Replace a table.")] = False,
) -> None:
    """Track a plain colour or what moves; write its centroid as a table of points in pixels.

    A picture beside the table, *.png, marks what is tracked in the first frame: pink, and blue
    where it has the hue of the colour in another light.
    """
    from studies.cli.tracking import track_command

    table = out or Path(f"{film.stem}-track.csv")
    numbers = {"color": color, "frames": frames, "region": region}
    for line in track_command(
        film, table, numbers, background=background, tolerance=tolerance, fps=fps, point=point,
        force=force, hue=hue,
    ):  # fmt: skip
        print(line)


@app.command()
def camera(
    pictures: Annotated[
        list[Path], Argument(metavar="PICTURE...", help="Pictures of a chessboard.")
    ],
    *,
    corners: Annotated[
        str, Option(metavar="COLUMNSxROWS", help="Inner corners of the board, such as 9x6.")
    ],
    square: Annotated[float, Option(help="Edge of a square [m].")],
    name: Annotated[str, Option(help="Name of the camera.")] = "front",
) -> None:
    """Print the table of a camera for a scene file, from pictures of a chessboard.

    The world of the scene is then that of the board in the first picture.
    """
    from studies.cli.calibrating import camera_table

    table, doubts = camera_table(pictures, corners, square, name)
    for line in doubts:
        print(f"warning: {line}", file=sys.stderr)
    print(table)


@app.command()
def exercise(
    number: Annotated[int | None, Argument(help="Left out: list all.")] = None,
    file: Annotated[
        Path | None, Argument(help="Default: exercise_NUMBER_NAME.py, in this folder.")
    ] = None,
    *,
    check: Annotated[bool, Option("--check", help="Grade the file; do not write it.")] = False,
    grade: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Grade all files of a class and print a table, CSV."),
    ] = None,
) -> None:
    """Write an exercise of the course, or grade your solution or those of a class."""
    from studies.exercises import command

    if grade is not None:
        command.grade_class(grade, number)
    elif number is None:
        print(command.listing())
    elif not check:
        print(command.write(number, file))
    else:
        passed, text = command.check(number, file)
        print(text)
        raise typer.Exit(0 if passed else 1)


@app.command()
def schema() -> None:
    """Print the JSON schema of scene files, by which editors complete and explain their keys."""
    from studies.scene.files import SCHEMA

    print(SCHEMA.read_text(encoding="utf-8"), end="")


@app.command()
def info() -> None:
    """Print versions, devices, what is missing and how to get it."""
    from studies.cli.info import info_text

    print(info_text())


def main() -> None:
    """Run the command line; a mistake ends in one message and exit code 2, no memory in 1."""
    gc.set_threshold(*COLLECT_EVERY)
    limit_before_loading()
    keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may know fewer characters
            stream.reconfigure(errors="replace")
    warnings.showwarning = _show_warning
    stopped_by = []
    with _terminating(stopped_by):
        _call(stopped_by)


def _show_warning(message: Warning | str, *_place: Any) -> None:
    """Print a warning of Python's as the other ones, without the line of code that gave it."""
    print(f"warning: {message}", file=sys.stderr, flush=True)


@contextmanager
def _terminating(stopped_by: list[int]) -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, and note it."""

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        stopped_by.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _call(stopped_by: list[int]) -> None:
    try:
        app()
    except (ValueError, OSError, ArithmeticError, MemoryError) as error:
        if _shows_traceback:
            raise
        is_memory = isinstance(error, MemoryError)
        lines = (_short_of_memory(error) if is_memory else str(error)).split("\n")
        short = [
            line if len(line) <= LONGEST else f"{line[:800]} ... {line[-400:]}" for line in lines
        ]
        print("adjsim:", "\n".join(short), file=sys.stderr)
        raise SystemExit(NO_MEMORY if is_memory else USER_ERROR) from None
    except (KeyboardInterrupt, SystemExit) as stop:  # Typer turns the one into the other
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:
            raise
        if _if_interrupted:
            print(f"\n{_if_interrupted}", file=sys.stderr)
        raise SystemExit(TERMINATED if stopped_by else INTERRUPTED) from None


def _short_of_memory(error: Exception) -> str:
    """Return what to ask less of; NumPy's error says how much it was."""
    wanted = str(error).rstrip(".")
    return (
        f"Memory is short{': ' if wanted else ''}{wanted}. Make the images smaller "
        "(`image.height`, `image.width`, `image.downsample`), film fewer frames, take a coarser "
        "mesh, or keep fewer states with `--checkpoint`, whichever the study has."
    )
