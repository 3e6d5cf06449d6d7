"""Fuzz for FUZZ_SECONDS each (60 by default): python -m tests.fuzz.run [harness ...].

The harnesses are parser, headers, and those of answers.py: api, ack and so on. It uses atheris if
installed, otherwise mutations without guidance, as many in that time as one core can execute. With
FUZZ_GUIDED=0 it never uses atheris, which measures wall time and so takes waiting for a hang.

With FUZZ_RECORD, a folder, the inputs that atheris finds useful are kept there for the next run,
and executed.json counts the executions of all runs. With FUZZ_EXECUTIONS, a number, each harness
then goes on without guidance, many times faster, until all its runs have executed as many, on
FUZZ_JOBS processes (all cores by default). With FUZZ_SECONDS=0 it begins there.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from natsproto import Msg, Pub
from tests.fuzz.answers import CHECKS
from tests.fuzz.oracle import as_input
from tests.fuzz.samples import samples
from tests.fuzz.unguided import FOUND, GARBAGE_LIMIT, LONGEST, MEMORY
from tests.progress import Progress
from tests.wire.support import read_all, streams

STEP = 1_000_000  # executions without guidance, after which they are counted
SMALL_STEP = 50_000  # the same if the time is limited; a busy machine takes a while for them
#: The module of each harness, and its arguments.
HARNESSES = {
    "parser": ["tests.fuzz.fuzz_parser"],
    "headers": ["tests.fuzz.fuzz_headers"],
    **{name: ["tests.fuzz.fuzz_answers", name] for name in CHECKS},
}


def write_corpus(folder: Path) -> None:
    """Write the initial corpus: the transcripts, their header blocks, and samples of answers."""
    for harness in HARNESSES:
        (folder / harness).mkdir(exist_ok=True)
    blocks: set[bytes] = set()
    for i, stream in enumerate(streams()):
        if len(stream.data) > GARBAGE_LIMIT:
            continue
        (folder / "parser" / str(i)).write_bytes(as_input(stream.peer, stream.data))
        if "err" not in stream.name:
            frames = read_all(stream.data, peer=stream.peer)
            blocks.update(
                f.raw_headers for f in frames if isinstance(f, (Msg, Pub)) and f.raw_headers
            )
    for i, block in enumerate(sorted(blocks)):
        (folder / "headers" / str(i)).write_bytes(block)
    for name, inputs in samples().items():
        for i, each in enumerate(inputs):
            (folder / name / str(i)).write_bytes(each)


class Fuzzer:
    """The harnesses, their inputs in a folder, and the executions so far."""

    def __init__(self, harnesses: list[str], folder: Path) -> None:
        self.harnesses = harnesses
        self.folder = folder
        self.progress = Progress(folder / "executed.json")
        self._lock = threading.Lock()
        write_corpus(folder)

    def guide(self, seconds: float) -> bool:
        """Fuzz with guidance; return False if something was found."""
        for harness in self.harnesses:
            options = [f"-max_total_time={max(1, round(seconds))}", f"-max_len={GARBAGE_LIMIT}"]
            options += [f"-artifact_prefix={FOUND}/fuzz_{harness}-", "-print_final_stats=1"]
            options += [f"-rss_limit_mb={MEMORY >> 20}", f"-timeout={LONGEST}", "-verbosity=0"]
            done = self._run(harness, [*HARNESSES[harness], str(self.folder / harness), *options])
            if done is None:
                return False
            self._count(harness, executed(done))
        return True

    def mutate(self, seconds: float) -> bool:
        """Fuzz without guidance; return False if something was found."""
        for harness in self.harnesses:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if not self._step(harness, SMALL_STEP):
                    return False
        return True

    def complete(self, executions: int, jobs: int) -> bool:
        """Fuzz without guidance until each harness has so many executions."""
        steps = [
            (harness, min(STEP, executions - first))
            for harness in self.harnesses
            for first in range(self.progress[harness], executions, STEP)
        ]
        with ThreadPoolExecutor(jobs) as pool:
            for clean in pool.map(self._step, *zip(*steps)):
                if not clean:
                    pool.shutdown(cancel_futures=True)
                    return False
        return True

    def _step(self, harness: str, executions: int) -> bool:
        arguments = [harness, str(self.folder / harness), str(executions)]
        if self._run(harness, ["tests.fuzz.unguided", *arguments]) is None:
            return False
        self._count(harness, executions)
        return True

    def _run(self, harness: str, arguments: list[str]) -> str | None:
        """Run a module; return its messages, or None if it found something."""
        command = [sys.executable, "-m", *arguments]
        run = subprocess.run(command, check=False, capture_output=True, text=True)
        if run.returncode == 0:
            return run.stderr
        print(run.stdout + run.stderr + f"{harness} found something: see {FOUND}", flush=True)
        return None

    def _count(self, harness: str, executions: int) -> None:
        with self._lock:
            self.progress.add(harness, executions)


def executed(statistics: str) -> int:
    lines = [line for line in statistics.splitlines() if "number_of_executed_units" in line]
    return int(lines[-1].split()[-1]) if lines else 0


def run(harnesses: list[str], folder: Path) -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    executions = int(os.environ.get("FUZZ_EXECUTIONS", "0"))
    jobs = int(os.environ.get("FUZZ_JOBS", "0")) or os.cpu_count() or 1
    fuzzer = Fuzzer(harnesses, folder)
    if os.environ.get("FUZZ_GUIDED") == "0":
        clean = fuzzer.mutate(seconds)
    elif importlib.util.find_spec("atheris") is None:
        print("atheris is not installed (it has wheels for Linux on x86-64): without guidance")
        clean = fuzzer.mutate(seconds)
    else:
        clean = seconds == 0 or fuzzer.guide(seconds)
    if not clean or not fuzzer.complete(executions, jobs):
        return 1
    for harness in harnesses:
        print(f"{harness}: {fuzzer.progress[harness]:,} executions, nothing found")
    return 0


def main() -> int:
    harnesses = sys.argv[1:] or list(HARNESSES)
    record = os.environ.get("FUZZ_RECORD", "")
    if record:
        return run(harnesses, Path(record))
    with tempfile.TemporaryDirectory() as directory:
        return run(harnesses, Path(directory))


if __name__ == "__main__":
    sys.exit(main())
