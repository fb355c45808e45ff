"""What the numbers of a run depend on, and that a run goes on only with all of it unchanged."""

import json
from dataclasses import replace

import pytest

from studies.runs import manifest, starting
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, STUDY
from studies.runs.manifest import dependencies, differences
from studies.runs.options import RunOptions, make_options
from studies.runs.starting import Recipe, recalled, start_or_resume


@pytest.fixture
def recipe(tmp_path):
    """A run with an input file."""
    film = tmp_path / "film.mp4"
    film.write_bytes(b"film")
    settings = {"search": {"levels": 4}, "films": {"a": {"video": str(film)}}, "all": [0.1, 2]}
    return Recipe("run", "ball.toml", "scene", settings, "levels = 4\n", RunOptions())


def start(recipe, out, *, resume=False):
    folder, job = start_or_resume(recipe, out, lambda: "job", resume=resume)
    folder.release()
    assert job == "job"
    return folder


def changed(recipe, **settings):
    return replace(recipe, settings={**recipe.settings, **settings})


def refused(recipe, out):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(StudyError) as error:
        start(recipe, out, resume=True)
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after == before
    return str(error.value)


def test_a_run_goes_on_with_the_same_recipe(recipe, tmp_path):
    folder = start(recipe, tmp_path / "run")
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", MANIFEST, STUDY]
    first = folder.read_json(MANIFEST)
    start(recipe, tmp_path / "run", resume=True)
    again = folder.read_json(MANIFEST)
    assert len(again.pop("resumed")) == 1
    assert first.pop("resumed") == []
    assert again == first


def test_what_differs_is_said(recipe, tmp_path, monkeypatch):
    out = tmp_path / "run"
    start(recipe, out)
    said = refused(changed(recipe, search={"levels": 5}, size=3), out)
    assert "`search.levels` was 4, is 5, `size` was nothing, is 3. " in said
    assert "`all` was [0.1, 2], is [0.1, 3]" in refused(changed(recipe, all=[0.1, 3]), out)
    for name, value in (("seed", 1), ("dtype", "float32")):
        options = replace(recipe.options, **{name: value})
        was = getattr(recipe.options, name)
        assert f"`--{name}` was {was}, is {value}" in refused(replace(recipe, options=options), out)
    film = tmp_path / "film.mp4"
    film.write_bytes(b"other")
    assert "the file of `films.a.video` has changed" in refused(recipe, out)
    film.write_bytes(b"film")
    with monkeypatch.context() as patch:
        environment = manifest.environment()
        versions = {**environment["versions"], "numba": "0.0"}
        other = {**environment, "code": "x", "processor": "z80", "versions": versions}
        patch.setattr(manifest, "environment", lambda: other)
        said = refused(recipe, out)
    assert "the code of adjsim has changed, " in said
    assert f"processor was {environment['processor']}, is z80" in said
    assert f"numba was {environment['versions']['numba']}, is 0.0" in said
    assert "`adjsim run ball.toml` made, not `adjsim scan`" in refused(
        replace(recipe, verb="scan"), out
    )
    start(recipe, out, resume=True)


def test_what_changes_no_number_may_differ(recipe, tmp_path):
    start(recipe, tmp_path / "run")
    options = replace(recipe.options, checkpoint="20kB", certificate=False)
    folder = start(replace(recipe, options=options), tmp_path / "run", resume=True)
    stored = folder.read_json(MANIFEST)
    assert (stored["checkpoint"], stored["certificate"]) == ("20kB", False)


def test_a_run_whose_gpu_is_lost_goes_on_on_the_cpu_and_stays_there(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(starting, "check_device", lambda device: None)
    out, cpu = tmp_path / "run", recipe
    cuda = replace(recipe, options=replace(recipe.options, device="cuda"))
    assert "`--device` was cpu, is cuda" in refused(cuda, start(cpu, tmp_path / "other").path)
    begun = start(cuda, out).read_json(MANIFEST)
    for _ in range(2):
        stored = start(cpu, out, resume=True).read_json(MANIFEST)
        assert stored["device"] == stored["depends_on"]["device"] == "cuda, then cpu"
        assert stored["hash"] != begun["hash"]
        assert recalled(out, {"device": None}, resume=True) == {"device": "cpu"}
    assert "`--device` was cuda, then cpu, is cuda" in refused(cuda, out)


def test_an_input_file_counts_by_its_contents_not_by_its_place(recipe, tmp_path):
    start(recipe, tmp_path / "run")
    moved = tmp_path / "elsewhere" / "film.mp4"
    moved.parent.mkdir()
    (tmp_path / "film.mp4").rename(moved)
    start(changed(recipe, films={"a": {"video": str(moved)}}), tmp_path / "run", resume=True)


def test_a_folder_of_pictures_counts_by_its_files(tmp_path):
    for k in range(2):
        (tmp_path / f"{k}.png").write_text(str(k))
    given = {"pictures": str(tmp_path)}
    options = {"seed": 0, "dtype": "float64", "device": "cpu"}
    before = dependencies(given, **options)
    assert dependencies(given, **options) == before
    (tmp_path / "1.png").rename(tmp_path / "2.png")
    assert differences(before, dependencies(given, **options)) == [
        "the file of `pictures` has changed"
    ]


def test_of_many_differences_the_first_are_named(recipe, tmp_path):
    start(recipe, tmp_path / "run")
    many = {f"k{k}": k for k in range(9)}
    assert "`k4` was nothing, is 4, and 4 more. " in refused(
        changed(recipe, **many), tmp_path / "run"
    )


def test_a_long_value_is_kept_by_its_digest(recipe):
    parts = changed(recipe, all=list(range(1000))).dependencies()
    other = changed(recipe, all=list(range(1, 1001))).dependencies()
    assert len(json.dumps(parts)) < 2000
    assert len(differences(parts, other)) == 1


@pytest.mark.parametrize("left", [(), (".part-12-manifest.json",), (".lock", ".part-1-a")])
def test_a_start_that_was_killed_is_begun_again(recipe, tmp_path, left, capsys):
    out = tmp_path / "run"
    out.mkdir()
    for name in left:
        (out / name).write_text("{")
    assert recalled(out, {"seed": None}, resume=True) == {"seed": None}
    start(recipe, out, resume=True)
    assert "run holds nothing to resume: a new run begins\n" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == [".lock", MANIFEST, STUDY]


@pytest.mark.parametrize("name", ["scan.json", "thesis.tex", STUDY, ".hidden"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_other_files_is_refused_and_left_alone(recipe, tmp_path, name, resume):
    out = tmp_path / "run"
    out.mkdir()
    (out / name).write_text("mine")
    with pytest.raises(StudyError, match="not a run folder" if resume else "is not empty"):
        recalled(out, {}, resume=resume)
    with pytest.raises(StudyError, match="not a run folder" if resume else "is not empty"):
        start(recipe, out, resume=resume)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "mine"


def test_a_mistake_leaves_no_folder(recipe, tmp_path):
    def make():
        raise StudyError("a mistake")

    with pytest.raises(StudyError, match="a mistake"):
        start_or_resume(recipe, tmp_path / "run", make, resume=False)
    assert not (tmp_path / "run").exists()


def test_a_copy_of_the_settings_is_made_again_and_a_damaged_manifest_is_refused(recipe, tmp_path):
    folder = start(recipe, tmp_path / "run")
    folder.file(STUDY).unlink()
    start(recipe, folder.path, resume=True)
    assert folder.file(STUDY).read_text() == recipe.toml
    text = folder.file(MANIFEST).read_text()
    folder.file(MANIFEST).write_text(text.replace('"levels": 4', '"levels": 5'))
    folder.file(MANIFEST).write_text(text[:100])
    assert "manifest.json is damaged" in refused(recipe, folder.path)


def test_arguments_that_are_left_out_are_those_of_the_folder(recipe, tmp_path):
    given = {"seed": 3, "overrides": ["a=1"], "dtype": None}
    out = tmp_path / "run"
    start(replace(recipe, arguments=recalled(out, given, resume=False)), out)
    left_out = {"seed": None, "overrides": [], "dtype": None}
    assert recalled(out, left_out, resume=True) == given
    assert recalled(out, {**left_out, "seed": 4}, resume=True)["seed"] == 4
    with pytest.raises(StudyError, match="add `--out DIR`"):
        recalled(None, given, resume=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": -1}, "`--seed` must be 0 or more and below 2^63, got -1"),
        ({"seed": 10**400}, "below 2^63, got a number of more digits"),
        ({"dtype": "int"}, "`--dtype` must be float64 or float32, got 'int'"),
        ({"device": "gpu"}, "`--device` must be cpu or cuda, got 'gpu'"),
        ({"checkpoint": "lots"}, "`--checkpoint` must be a size"),
    ],
)
def test_an_option_that_cannot_be_is_refused(given, message):
    with pytest.raises(StudyError) as error:
        make_options(given)
    assert message in str(error.value)
