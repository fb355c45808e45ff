"""Where the command `adjsim` begins: what an extra would bring is named, not a traceback."""

import sys


def main() -> None:
    """Run the command line; a package that is missing ends in one message and exit code 2."""
    try:
        from studies.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        from adjsim.extras import missing_package  # which imports Numba

        message = missing_package(error)
        if message is None:
            raise
        if sys.argv[1:] == ["info"]:  # which lists all that is missing
            from studies.cli.info import info_text

            print(info_text())
            return
        print("adjsim:", message, file=sys.stderr)
        raise SystemExit(2) from None
