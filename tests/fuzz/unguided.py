"""Mutations without guidance: python -m tests.fuzz.unguided HARNESS CORPUS EXECUTIONS [SEED].

Without instrumentation, and without libFuzzer between two executions, one takes a fraction of the
time. But nothing notices which inputs lead to new code, so they are made from the inputs of a
corpus that a guided run has found.

An execution is one call of the check with one mutated input. Inputs that occur twice count twice.
"""

from __future__ import annotations

import gc
import hashlib
import json
import random
import re
import resource
import signal
import sys
import traceback
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.answers import CHECKS, check_services
from tests.fuzz.mutate import TOKENS, VALUES, WORDS
from tests.fuzz.oracle import check_block, check_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FOUND = Path(__file__).parent / "found"
HARNESSES: dict[str, Callable[[bytes], None]] = {
    "parser": check_input,
    "headers": check_block,
    **CHECKS,
}
LONGEST = 10  # seconds of CPU time for GROUP executions
GROUP = 1_000
AT_ONCE = 50  # requests to a service
MEMORY = 1 << 30
GARBAGE_LIMIT = 2_000  # bytes; longer inputs only make the fuzzer slow
MOST_PARTS = 4  # of one input that are replaced
SPANS = (0, 0, 1, 1, 1, 2, 3, 8)  # how many tokens or bytes a part has
PIECES = 4_096
SHORT = 100  # bytes; much shorter inputs are not taken more often than these
#: A string of JSON, a number, a word, the end of a line, or a single byte.
TOKEN = re.compile(rb'"(?:[^"\\\r\n]|\\.)*"|[0-9]+|[A-Za-z]+|\r\n|.', re.DOTALL)
VALUE = re.compile(rb'"(?:[^"\\\r\n]|\\.)*"|[0-9]+|[A-Za-z]+')
JSON = [json.dumps(value).encode() for value in VALUES]


class Input:
    """An input of a corpus: the places between its tokens, and which of the tokens are values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.every = range(len(data) + 1)  # the places between bytes
        tokens = TOKEN.findall(data)
        self.places = list(accumulate(map(len, tokens), initial=0))
        self.values = [i for i, token in enumerate(tokens) if VALUE.fullmatch(token)]


class Mutations:
    """An endless supply of mutations of the inputs of a corpus; the same for the same seed.

    Every mutation replaces a part of an input by a piece. A part is a value, a few tokens or a few
    bytes; either may be empty. The next input replaces another part as well, further left, so that
    what is known of the places of tokens stays true. Short inputs are taken more often.
    """

    def __init__(self, seed: int, corpus: list[bytes]) -> None:
        self._rng = random.Random(seed)
        self._inputs = [Input(data) for data in corpus]
        self._weights = list(accumulate((SHORT + len(data)) ** -1.5 for data in corpus))
        self._pieces = self._make_pieces(corpus)
        values = [value for data in corpus for value in VALUE.findall(data) if len(value) < 40]
        self._values = JSON * 8 + self._rng.choices(values or JSON, k=PIECES)

    def _make_pieces(self, corpus: list[bytes]) -> list[bytes]:
        """Return bytes to insert: none, single ones, words of the protocol, parts of the corpus."""
        rng = self._rng
        pieces = [b""] * (PIECES // 8) + [bytes([byte]) for byte in range(256)]
        # The longest words make their inputs slow: each of them is there once.
        pieces += [word for word in TOKENS + WORDS if len(word) > 64]
        pieces += rng.choices([word for word in TOKENS + WORDS if len(word) <= 64], k=PIECES // 4)
        while len(pieces) < PIECES:
            tokens = TOKEN.findall(rng.choice(corpus)) or [b""]
            at = rng.randrange(len(tokens))
            pieces.append(b"".join(tokens[at : at + rng.choice(SPANS)])[:200])
        return pieces

    def __iter__(self) -> Iterator[bytes]:
        choose = self._rng.choices
        random = self._rng.random
        while True:
            [chosen] = choose(self._inputs, cum_weights=self._weights)
            count = 1 + int(random() * MOST_PARTS)
            kind = random()
            if kind < 0.4 and chosen.values:
                places: Sequence[int] = chosen.places
                parts = [(start, start + 1) for start in choose(chosen.values, k=count)]
                pieces = self._values
            else:
                places = chosen.places if kind < 0.8 else chosen.every
                starts = choose(range(len(places)), k=count)
                spans = choose(SPANS, k=count)
                parts = [(start, start + span) for start, span in zip(starts, spans)]
                pieces = self._pieces
            parts.sort(reverse=True)
            data = chosen.data
            last = len(places) - 1
            for (start, end), piece in zip(parts, choose(pieces, k=count)):
                data = data[: places[start]] + piece + data[places[end if end < last else last] :]
                yield data
                last = start


def run(harness: str, inputs: Iterator[bytes], executions: int) -> list[bytes]:
    """Check so many inputs; after one that fails, print the traceback and return it.

    Requests to a service are checked several at once: then all of these are returned.
    """
    check = HARNESSES[harness]
    checked: list[bytes] = []
    signal.signal(signal.SIGPROF, _too_slow)
    try:
        while executions > 0:
            # By the CPU time of a group: a timer for each execution would take as long as some.
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
            group = islice(inputs, min(GROUP, executions))
            if harness == "service":
                while checked := list(islice(group, AT_ONCE)):
                    check_services(checked)
            else:
                for data in group:
                    checked = [data]
                    check(data)
            executions -= GROUP
    except Exception:
        traceback.print_exc()
        return checked
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return []


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"up to {GROUP} executions took {LONGEST} s of CPU time")


def main() -> int:
    harness, folder, executions, *rest = sys.argv[1:]
    seed = int(rest[0]) if rest else random.SystemRandom().randrange(2**32)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    files = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    corpus = [data for data in files if len(data) <= GARBAGE_LIMIT]
    inputs = iter(Mutations(seed, corpus))
    gc.freeze()  # what exists already is not garbage
    found = run(harness, inputs, int(executions))
    for data in found:
        path = FOUND / f"fuzz_{harness}-{hashlib.sha1(data).hexdigest()}"
        path.write_bytes(data)
        print(f"seed {seed}, {path}: {data[:1000]!r}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
