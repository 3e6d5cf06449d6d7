"""Fuzz for FUZZ_SECONDS each (60 by default): python -m tests.fuzz.run [harness ...].

The harnesses are parser, headers, and those of answers.py: api, ack and so on. It uses atheris if
installed, otherwise more of the seeded mutations that `make test` also runs.

With atheris and FUZZ_RECORD, a folder, the inputs that it finds useful are kept there for the next
run, and executed.json counts the executions of all runs. With FUZZ_EXECUTIONS, a number, each
harness then goes on without guidance, many times faster, until all its runs have executed as many.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from natsproto import Msg, Pub
from tests.fuzz.answers import CHECKS
from tests.fuzz.mutate import Inputs, Mutator
from tests.fuzz.oracle import as_input, check_and_tell
from tests.fuzz.samples import samples
from tests.progress import Progress
from tests.wire.support import read_all, streams

FOUND = Path(__file__).parent / "found"
GARBAGE_LIMIT = 2_000  # bytes; longer inputs only make the fuzzer slow
STEP = 1_000_000  # executions without guidance, after which they are counted
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


def executed(statistics: str) -> int:
    lines = [line for line in statistics.splitlines() if "number_of_executed_units" in line]
    return int(lines[-1].split()[-1]) if lines else 0


def run_atheris(harnesses: list[str], seconds: float, executions: int, record: str = "") -> int:
    """Fuzz with guidance for so long, and then without, until there are so many executions."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(record or directory)
        write_corpus(folder)
        progress = Progress(folder / "executed.json")
        for harness in harnesses:
            corpus = str(folder / harness)
            limit = f"-max_total_time={max(1, round(seconds))}"
            status = fuzz([*HARNESSES[harness], corpus, limit], harness, progress)
            while status == 0 and progress[harness] < executions:
                limit = f"-runs={min(STEP, executions - progress[harness])}"
                status = fuzz(["tests.fuzz.unguided", harness, corpus, limit], harness, progress)
            if status != 0:
                return status
            print(f"{harness}: {progress[harness]:,} inputs, nothing found", flush=True)
    return 0


def fuzz(arguments: list[str], harness: str, progress: Progress) -> int:
    """Run a module with libFuzzer's options, and count its executions."""
    command = [sys.executable, "-m", *arguments]
    command += [f"-artifact_prefix={FOUND}/fuzz_{harness}-", "-rss_limit_mb=1024", "-timeout=10"]
    command += [f"-max_len={GARBAGE_LIMIT}", "-print_final_stats=1", "-verbosity=0"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stdout + run.stderr + f"{harness} found something: see {FOUND}")
    else:
        progress.add(harness, executed(run.stderr))
    return run.returncode


def run_mutations(harnesses: list[str], seconds: float) -> int:
    """Run the mutations with seeds from 1,000 on, which `make test` does not use."""
    valid = samples()
    for harness in harnesses:
        if harness in CHECKS:
            done = _mutate_inputs(harness, valid[harness], seconds)
        else:
            done = _mutate_streams(seconds)
        print(f"{harness}: {done} mutations, nothing found", flush=True)
    return 0


def _mutate_inputs(harness: str, valid: list[bytes], seconds: float) -> int:
    end = time.monotonic() + seconds
    for done, data in enumerate(Inputs(1000, valid)):
        CHECKS[harness](data)
        if time.monotonic() > end:
            return done
    raise AssertionError("there is always another one")


def _mutate_streams(seconds: float) -> int:
    end = time.monotonic() + seconds
    done = 0
    for seed in count(1000):
        for peer, stream, cuts in Mutator(seed):
            check_and_tell(peer, stream, cuts)
            done += 1
            if done % 10_000 == 0:
                break
        if time.monotonic() > end:
            break
    return done


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    harnesses = sys.argv[1:] or list(HARNESSES)
    if importlib.util.find_spec("atheris") is not None:
        executions = int(os.environ.get("FUZZ_EXECUTIONS", "0"))
        return run_atheris(harnesses, seconds, executions, os.environ.get("FUZZ_RECORD", ""))
    print("atheris is not installed (it has wheels for Linux on x86-64): seeded mutations instead")
    return run_mutations(harnesses, seconds)


if __name__ == "__main__":
    sys.exit(main())
