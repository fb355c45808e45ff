"""The command `python -m baselines DATASET`: train networks, score them, leave a report."""

import hashlib
import sys
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import torch
import typer

from adjsim import checks
from baselines.networks import NETWORKS
from baselines.report import write_guesses, write_report
from baselines.scores import blind_guesses, scored
from baselines.training import Plan, Trained, train
from baselines.videos import Videos, read_index, read_videos
from studies.runs.errors import StudyError
from studies.runs.folder import RESULT, RunFolder, new_folder


def learn(
    dataset: Annotated[Path, typer.Argument(help="A folder that `adjsim dataset` made.")],
    *,
    network: Annotated[
        list[str] | None, typer.Option(help=f"{' or '.join(NETWORKS)}; by default both.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="Times that every video is learned from.")] = 12,
    every: Annotated[int, typer.Option(help="Every so many frames one is looked at.")] = 8,
    rate: Annotated[float, typer.Option(help="Learning rate at first.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Of weights, dropout and order.")] = 0,
    judged: Annotated[
        Path | None,
        typer.Option(help="A data set of the same scene and another seed, all of it to judge by."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder; by default the next free runs/learned-NNN.")
    ] = None,
) -> None:
    """Train networks to guess what was drawn of a scene from its film, and score them."""
    checks.whole("--epochs", epochs, 1)
    checks.positive("--rate", rate)
    names = network or list(NETWORKS)
    for name in names:
        checks.known_key("network", name, NETWORKS)
    index = read_index(dataset)
    sets = {which: read_videos(dataset, which, every) for which in ("train", "test")}
    unseen = None if judged is None else read_unseen(judged, index, sets["train"].names, every)
    folder = RunFolder.create(out or new_folder("learned"))
    print(f"folder: {folder.path}", flush=True)
    plans = [Plan(name, epochs, rate, seed) for name in names]
    trained = {plan.network: train(sets["train"], plan, _teller(plan)) for plan in plans}
    for name, learner in trained.items():
        with folder.replacing(f"{name}.pt") as temporary:
            torch.save(learner.network.state_dict(), temporary)
    test = sets["test"]
    guesses = {name: learner.guess(test) for name, learner in trained.items()}
    guesses |= blind_guesses(sets["train"], test, seed)
    result = {
        **_what(index, sets, every),
        "networks": [_record(plan, trained[plan.network]) for plan in plans],
        "scores": scored(guesses, test),
    }
    folder.write_json(RESULT, result)
    write_guesses(folder, guesses, test)
    _tell(result["scores"])
    print(f"report: {write_report(folder, result, guesses, test)}")
    if unseen is not None:
        print(f"of the {len(unseen)} scenes of {judged}:")
        scores = scored({name: learner.guess(unseen) for name, learner in trained.items()}, unseen)
        folder.write_json("judged.json", {"data set": str(judged), "scores": scores})
        _tell(scores)


def read_unseen(path: Path, learned: dict[str, Any], names: tuple[str, ...], every: int) -> Videos:
    """Return all videos of a data set that networks are judged by.

    Raises
    ------
    StudyError
        If it is of another scene, or has the seed of the data set that was learned from.
    """
    index, videos = read_index(path), read_videos(path, None, every)
    if index["scene"] != learned["scene"] or videos.names != names:
        raise StudyError(
            f"`--judged` must be a data set of `{learned['scene']}` as what is learned from, got "
            f"one of `{index['scene']}`."
        )
    if index["seed"] == learned["seed"]:
        raise StudyError(
            f"`--judged` must have another seed than what is learned from, both have "
            f"{index['seed']}."
        )
    return videos


def _tell(scores: list[dict[str, Any]]) -> None:
    """Print mean and median of the relative errors."""
    for score in scores:
        print(f"{score['method']:9} {score['parameter']:19} mean {score['mean']:.3f}  median "
              f"{score['median']:.3f}")  # fmt: skip


def _teller(plan: Plan) -> Any:
    """Return what prints an epoch."""

    def report(epoch: int, losses: dict[str, float]) -> None:
        print(
            f"{plan.network}  epoch {epoch + 1}/{plan.epochs}  train {losses['train']:.4f}  "
            f"kept back {losses['kept_back']:.4f}",
            file=sys.stderr,
        )

    return report


def _what(index: dict[str, Any], sets: dict[str, Videos], every: int) -> dict[str, Any]:
    """Return what was learned from, and with what."""
    sums = "".join(shard["sha256"] for shard in index["shards"])
    return {
        "dataset": index["scene"],
        "seed": index["seed"],
        "checksum": hashlib.sha256(sums.encode()).hexdigest(),
        "train": len(sets["train"]),
        "test": len(sets["test"]),
        "every": every,
        "frames": sets["train"].images.shape[1],
        "command": " ".join(["python -m baselines", *sys.argv[1:]]),
        "versions": {
            "torch": torch.__version__, "numpy": np.__version__, "h5py": h5py.__version__,
        },
    }  # fmt: skip


def _record(plan: Plan, trained: Trained) -> dict[str, Any]:
    """Return how a network was trained."""
    return {
        **vars(plan),
        "weights": sum(weight.numel() for weight in trained.network.parameters()),
        "best": trained.best,
        "seconds": trained.seconds,
        "threads": torch.get_num_threads(),
        "losses": trained.losses,
    }
