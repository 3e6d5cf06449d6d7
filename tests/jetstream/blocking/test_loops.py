"""Loops that a with block stops."""

from __future__ import annotations

import pytest

from jetstream.blocking.loops import StoppableLoop


class Loop(StoppableLoop):
    def __init__(self):
        self.stops = 0

    def stop(self):
        self.stops += 1

    def __next__(self):
        raise StopIteration


def test_the_end_of_a_block_stops_the_loop():
    loop = Loop()
    with loop as entered:
        assert entered is iter(loop) is loop
        assert (list(loop), loop.stops) == ([], 0)
    assert loop.stops == 1


def test_a_subclass_says_how_to_stop():
    with pytest.raises(NotImplementedError):
        StoppableLoop().stop()
