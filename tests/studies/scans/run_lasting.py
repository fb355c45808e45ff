"""Run the command line with scans that cannot end: `python -m tests.studies.scans.run_lasting`.

A test that stops a scan from outside would be too late where it gets the processor too late.
"""

from studies.cli import main
from studies.scans import scanning
from tests.studies.scans.lasting import Lasting


if __name__ == "__main__":
    scanning.Survey = Lasting
    main()
