"""Fuzz for FUZZ_SECONDS in total (60 by default): python -m tests.fuzz.run.

It uses atheris if installed, otherwise more of the seeded mutations that `make test` also runs.
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
from tests.fuzz.mutate import Mutator
from tests.fuzz.oracle import as_input, check_and_tell
from tests.wire.support import read_all, streams

FOUND = Path(__file__).parent / "found"
GARBAGE_LIMIT = 20_000  # bytes; longer inputs only make the fuzzer slow
HARNESSES = {"fuzz_parser": 0.75, "fuzz_headers": 0.25}  # share of the time


def write_corpus(folder: Path) -> None:
    """Write the initial corpus: the transcripts, and the header blocks in them."""
    for harness in HARNESSES:
        (folder / harness).mkdir()
    blocks: set[bytes] = set()
    for i, stream in enumerate(streams()):
        if len(stream.data) > GARBAGE_LIMIT:
            continue
        (folder / "fuzz_parser" / str(i)).write_bytes(as_input(stream.peer, stream.data))
        if "err" not in stream.name:
            frames = read_all(stream.data, peer=stream.peer)
            blocks.update(
                f.raw_headers for f in frames if isinstance(f, (Msg, Pub)) and f.raw_headers
            )
    for i, block in enumerate(sorted(blocks)):
        (folder / "fuzz_headers" / str(i)).write_bytes(block)


def inputs(statistics: str) -> str:
    lines = [line for line in statistics.splitlines() if "number_of_executed_units" in line]
    return lines[-1].split()[-1] if lines else "no"


def run_atheris(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_corpus(folder)
        for harness, share in HARNESSES.items():
            command = [sys.executable, "-m", f"tests.fuzz.{harness}", str(folder / harness)]
            command += [f"-max_total_time={max(1, round(seconds * share))}", "-timeout=10"]
            command += [f"-artifact_prefix={FOUND / harness}-", "-rss_limit_mb=1024"]
            command += [f"-max_len={GARBAGE_LIMIT}", "-print_final_stats=1", "-verbosity=0"]
            run = subprocess.run(command, check=False, capture_output=True, text=True)
            if run.returncode != 0:
                print(run.stdout + run.stderr + f"{harness} found something: see {FOUND}")
                return run.returncode
            print(f"{harness}: {inputs(run.stderr)} inputs, nothing found", flush=True)
    return 0


def run_mutations(seconds: float) -> int:
    """Run the mutations with seeds from 1,000 on, which `make test` does not use."""
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
    print(f"{done} mutated streams, nothing found")
    return 0


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", "60"))
    if importlib.util.find_spec("atheris") is not None:
        return run_atheris(seconds)
    print("atheris is not installed (it has wheels for Linux on x86-64): seeded mutations instead")
    return run_mutations(seconds)


if __name__ == "__main__":
    sys.exit(main())
