"""Run the command line with scans that cannot end: `python -m tests.studies.scans.run_lasting`.

A test that stops a scan from outside would be too late where it gets the processor too late.
"""

if __name__ == "__main__":  # workers load this module too, before they are told of their threads
    import signal

    from studies.cli.main import main
    from studies.scans import scanning
    from tests.studies.scans.lasting import Lasting

    scanning.Survey = Lasting
    # As at a terminal: what a shell starts in the background ignores Ctrl-C, children included.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
