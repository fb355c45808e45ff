"""The command `adjsim`, called in this process."""

import contextlib
import io
from unittest import mock

from studies.cli import main as cli


class Command:
    """The command, or one of its subcommands: returns exit code, stdout and stderr."""

    def __init__(self, *first):
        self.first = first

    def __call__(self, *args):
        out, err, code = io.StringIO(), io.StringIO(), 0
        argv = ["adjsim", *map(str, (*self.first, *args))]
        with (
            mock.patch("sys.argv", argv),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                cli.main()
            except SystemExit as exit_:
                code = exit_.code or 0
        return code, out.getvalue(), err.getvalue()

    def done(self, *args):
        """Return what it prints where it succeeds."""
        code, out, err = self(*args)
        assert code == 0, err
        return out

    def refused(self, *args):
        """Return the message with which it refuses bad input."""
        code, _, err = self(*args)
        assert code == 2, err
        assert "Traceback" not in err
        return err


adjsim = Command()
