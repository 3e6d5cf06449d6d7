"""atheris on a check of answers.py: python -m tests.fuzz.fuzz_answers ack [libFuzzer options]."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["natsproto", "jetstream"]):
    from tests.fuzz.answers import CHECKS


def main() -> None:
    check = CHECKS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
