"""Run the learned baselines: `python -m baselines DATASET`."""

import sys

import typer

from adjsim.extras import how_to_install


USER_ERROR = 2


def main() -> None:
    """Run the command; a user's mistake ends in one message and exit code 2."""
    try:
        from baselines.learning import learn
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print(f"baselines: PyTorch is not installed: {how_to_install('torch')}.", file=sys.stderr)
        raise SystemExit(USER_ERROR) from None
    try:
        typer.run(learn)
    except (ValueError, OSError) as error:
        print(f"baselines: {error}", file=sys.stderr)
        raise SystemExit(USER_ERROR) from None


if __name__ == "__main__":
    main()
