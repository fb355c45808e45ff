"""Run the command line from the sources under test: `python -m tests.studies.run_adjsim`."""

from studies.cli.main import main


if __name__ == "__main__":
    main()
