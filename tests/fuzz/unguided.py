"""atheris's mutations without its guidance: python -m tests.fuzz.unguided HARNESS CORPUS [options].

Without instrumentation an execution takes a fraction of the time, but the fuzzer cannot see which
inputs lead to new code. So they are made from the inputs of a corpus that a guided run has found.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.answers import CHECKS
from tests.fuzz.oracle import check_block, check_input

if TYPE_CHECKING:
    from collections.abc import Callable

HARNESSES = {"parser": check_input, "headers": check_block, **CHECKS}
LENGTH = 4  # mutations of one input, on average, before the next one is taken


class Chains:
    """Mutations of the inputs in a corpus, each one a mutation of the last, for a while.

    libFuzzer's own choice, which it offers as `data`, is of no use: it keeps only inputs that lead
    to new code.
    """

    def __init__(self, corpus: list[bytes], mutate: Callable[[bytes, int], bytes]) -> None:
        self._corpus = corpus
        self._mutate = mutate
        self._data = corpus[0]

    def __call__(self, data: bytes, max_size: int, seed: int) -> bytes:
        chosen, last = divmod(seed, LENGTH)
        if last == 0:
            self._data = self._corpus[chosen % len(self._corpus)]
        self._data = self._mutate(self._data, max_size)
        return self._data


def main() -> None:
    import atheris

    harness, folder, *options = sys.argv[1:]
    corpus = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    # `Mutate` is another function after `Setup`.
    chains = Chains(corpus, lambda data, max_size: atheris.Mutate(data, max_size))
    atheris.Setup([sys.argv[0], *options], HARNESSES[harness], custom_mutator=chains)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
