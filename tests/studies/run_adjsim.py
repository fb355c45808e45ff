"""Run the command line from the sources under test: `python -m tests.studies.run_adjsim`."""

import signal

from studies.cli.main import main


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
    main()
