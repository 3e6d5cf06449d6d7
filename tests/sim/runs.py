"""Runs of the simulation: one seed, many seeds on all cores, and the shortest trace of a failure.

A failing run is made smaller before it is shown: faults and other optional steps are left out one
by one, as long as the same invariant is still violated.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.sim.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sim.world import World

SEEDS = Path(__file__).with_name("seeds.txt")
CHUNK = 250


class Failure(NamedTuple):
    """A violated invariant, and how to see it again."""

    mode: str
    seed: int
    text: str
    skip: tuple[int, ...] = ()
    trace: tuple[str, ...] = ()  # what happened, without the bytes

    @property
    def label(self) -> str:
        """The invariant: "Violation: K2", or the name of an unexpected exception."""
        kind, _, text = self.text.partition(": ")
        return f"{kind}: {text.partition(':')[0]}" if kind == "Violation" else kind

    @property
    def replay(self) -> str:
        skip = f" --skip {','.join(map(str, self.skip))}" if self.skip else ""
        return f"python -m tests.sim --mode {self.mode} --seed {self.seed}{skip} -v"

    def __str__(self) -> str:
        lines = (f"{self.mode}, seed {self.seed}: {self.text}", self.replay, *self.trace)
        return "\n  ".join(lines)


def make(mode: str, seed: int, verbose: bool, skip: tuple[int, ...]) -> World:
    world = MODES[mode](seed, verbose)
    world.skipped = set(skip)
    return world


def attempt(
    mode: str, seed: int, verbose: bool = False, skip: tuple[int, ...] = ()
) -> Failure | None:
    """Return the failure of one run; None if there is none."""
    with uncollected():
        world = make(mode, seed, verbose, skip)
        try:
            world.run()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            world.note(text)
            return Failure(mode, seed, text, skip, tuple(world.trace))
    return None


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage of earlier runs out of the block, so that a seed always means the same.

    Otherwise their finalizers run in the middle of it. A traceback that one of them leaves behind
    refers to the frames that were interrupted, and so an iteration that the program has left would
    not end before the next collection.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def failure(mode: str, seed: int) -> str:
    """Return the violated invariant, how to replay it and the trace; "" if there is none."""
    found = attempt(mode, seed)
    return "" if found is None else str(minimize(found))


def minimize(found: Failure) -> Failure:
    """Return the same failure with as few faults and optional steps as possible."""
    world = make(found.mode, found.seed, False, ())
    with contextlib.suppress(Exception):
        world.run()
    for index in reversed(range(world.optional)):
        skip = tuple(sorted({*found.skip, index}))
        smaller = attempt(found.mode, found.seed, skip=skip)
        if smaller is not None and smaller.label == found.label:
            found = smaller
    return found


def _search(mode: str, first: int, count: int) -> tuple[str, float, Failure | None]:
    began = time.process_time()
    found = None
    for seed in range(first, first + count):
        found = attempt(mode, seed)
        if found is not None:
            found = minimize(found)
            break
    return mode, time.process_time() - began, found


def search(
    modes: list[str], first: int, count: int, jobs: int = 0
) -> Iterator[tuple[str, float, list[Failure]]]:
    """Run seeds of all modes on all cores; yield each mode with its CPU time when it is done.

    A failure ends its chunk of seeds.
    """
    size = min(CHUNK, max(1, count))
    chunks = [
        (mode, seed, min(size, first + count - seed))
        for mode in modes
        for seed in range(first, first + count, size)
    ]
    left = {mode: sum(1 for chunk in chunks if chunk[0] == mode) for mode in modes}
    spent = dict.fromkeys(modes, 0.0)
    failures: dict[str, list[Failure]] = {mode: [] for mode in modes}
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        for done in as_completed([pool.submit(_search, *chunk) for chunk in chunks]):
            mode, seconds, found = done.result()
            spent[mode] += seconds
            left[mode] -= 1
            if found is not None:
                failures[mode].append(found)
            if not left[mode]:
                yield mode, spent[mode], sorted(failures[mode], key=lambda each: each.seed)


def kept_seeds() -> list[tuple[str, int]]:
    """Return the seeds that once failed, which seeds.txt has."""
    lines = [line.partition("#")[0].split() for line in SEEDS.read_text().splitlines()]
    return [(mode, int(seed)) for mode, *seeds in filter(None, lines) for seed in seeds]
