"""stops: signals that end a command.

SPDX-License-Identifier: Apache-2.0
"""

import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stops:
    """Handles SIGINT and SIGTERM: each is a KeyboardInterrupt, through what removes files that are
    not whole. Python drops an exception that is raised in a finaliser, and tells of it, which is
    left out here; a loop that calls `check` still ends."""

    def __init__(self):
        self.number = None  # of the first signal
        for number in SIGNALS:
            signal.signal(number, self._stop)
        self._tell, sys.unraisablehook = sys.unraisablehook, self._dropped

    def _stop(self, number, _):
        self.number = self.number or number
        raise KeyboardInterrupt(number)

    def _dropped(self, what):
        if not issubclass(what.exc_type, KeyboardInterrupt):
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
