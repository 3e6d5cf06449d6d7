"""atheris on header blocks: python -m tests.fuzz.fuzz_headers [libFuzzer options]."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["natsproto"]):
    from tests.fuzz.oracle import check_block


def main() -> None:
    atheris.Setup(sys.argv, check_block)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
