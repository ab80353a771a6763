"""stops: ends of a command: errors of its user's, signals, and readers that leave.

SPDX-License-Identifier: Apache-2.0
"""

import os
import signal
import sys

from . import library

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stops:
    """Handles SIGINT and SIGTERM: the first is a KeyboardInterrupt, through what removes files that
    are not whole; further ones, as of a terminal and then of the parent, do not interrupt that.
    Python drops an exception that is raised in a finaliser, and tells of it, which is left out
    here; a loop that calls `check` still ends, as does the next signal."""

    def __init__(self):
        self.number = None  # of the first signal
        self._raises = True
        for number in SIGNALS:
            signal.signal(number, self._stop)
        self._tell, sys.unraisablehook = sys.unraisablehook, self._dropped

    def _stop(self, number, _):
        self.number = self.number or number
        if self._raises:
            self._raises = False
            raise KeyboardInterrupt(number)

    def _dropped(self, what):
        if issubclass(what.exc_type, KeyboardInterrupt):
            self._raises = True
        else:
            self._tell(what)

    def check(self):
        """Raises KeyboardInterrupt if a signal has come."""
        if self.number:
            raise KeyboardInterrupt(self.number)

    @staticmethod
    def ignore():
        """Leaves further signals without effect, until the interpreter has ended."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def exit_code(program, action, stopped=None):
    """The exit code of a command that is `action(tell, stops)`. `stopped` gets the exception of a
    signal and `tell`, which writes a line of the program."""
    stops = Stops()

    def tell(text):
        print(f"{program}: {text}", file=sys.stderr, flush=True)

    try:
        action(tell, stops)
        return 0
    except library.Error as error:
        tell(error)
        return error.code
    except MemoryError as error:
        tell(f"out of memory: {error}")
        return library.LimitError.code
    except BrokenPipeError:  # nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:
        stops.ignore()
        if stopped:
            stopped(error, tell)
        return 128 + (stops.number or signal.SIGINT)
