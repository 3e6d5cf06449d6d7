"""atheris on the parser, guided by coverage: python -m tests.fuzz.fuzz_parser [libFuzzer options].

`make fuzz` starts it with the transcripts. Failing inputs are written to tests/fuzz/found, from
where test_mutations.py runs them in every later run.
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
