"""atheris on the parser, guided by coverage: python -m tests.fuzz.fuzz_parser [libFuzzer options].

`make fuzz` gives it the transcripts to start from. What it finds is written to tests/fuzz/found,
where test_mutations.py runs it ever after.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["natsproto"]):
    from tests.fuzz.oracle import check_input


def main() -> None:
    atheris.Setup(sys.argv, check_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
