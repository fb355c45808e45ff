"""Run the command line until N lines are logged: `python -m tests.studies.run_killed N ...`."""

import sys

from studies.cli.main import main
from tests.studies.stopping import die_after


if __name__ == "__main__":
    die_after(int(sys.argv.pop(1)))
    main()
