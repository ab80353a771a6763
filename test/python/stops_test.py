"""Signals that end a command, where Python drops the exception, too."""

import os
import signal
import sys

import pytest
from heddle.stops import SIGNALS, Stops


@pytest.fixture(name="stops")
def make_stops():
    before = {number: signal.getsignal(number) for number in SIGNALS}
    hook = sys.unraisablehook
    yield Stops()
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


class Dropped:
    """Gets a signal in its finaliser, whose exceptions go nowhere."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # the handler runs between instructions
            pass


def test_a_signal_in_a_finaliser_still_ends_the_loop(stops):
    stops.check()
    Dropped()
    with pytest.raises(KeyboardInterrupt) as caught:
        stops.check()
    assert caught.value.args == (signal.SIGTERM,) and stops.number == signal.SIGTERM


def test_a_signal_is_an_exception_at_once(stops):
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
    assert stops.number == signal.SIGINT


def test_a_second_signal_does_not_interrupt_what_the_first_began(stops):
    """A terminal and the parent may each send one to the same process."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
    assert stops.number == signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        stops.check()


def test_a_signal_after_one_in_a_finaliser_is_an_exception(stops):
    Dropped()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert stops.number == signal.SIGTERM
