"""atheris on a check of answers.py: python -m tests.fuzz.fuzz_answers ack [libFuzzer options]."""

from __future__ import annotations

import sys

import atheris

from tests.core import MODULES, dotted

# The modules that read the input of a harness. Others would only slow it down, by half or more.
READERS = {
    "api": ["jetstream.api", "jetstream.schema", "jetstream.errors", "jetstream.kv.entry"],
    "ack": ["jetstream.api.metadata", "jetstream.message", "jetstream.ordered.cursor"],
    "advisory": ["jetstream.advisories", "jetstream.api.client", "jetstream.schema"],
    "stored": ["jetstream.api", "jetstream.kv.entry", "jetstream.objects.info", "natsproto.wire"],
    "service": ["jetstream.services", "natsproto.wire.headers", "natsproto.wire.parser"],
    "info": ["natsproto.wire", "natsproto.connection.lifecycle", "natsproto.connection.servers"],
}


def others(readers: list[str]) -> list[str]:
    """Return the modules of the library that are not among the readers, nor in one of them."""
    prefixes = tuple(f"{each}." for each in readers)
    names = [dotted(path) for path in MODULES]
    return [name for name in names if not f"{name}.".startswith(prefixes)]


HARNESS = sys.argv.pop(1)
# `include` looks at the first part of a name only.
PACKAGES = ["natsproto", "jetstream"]
with atheris.instrument_imports(include=PACKAGES, exclude=others(READERS[HARNESS])):
    from tests.fuzz.answers import CHECKS


def main() -> None:
    atheris.Setup(sys.argv, CHECKS[HARNESS])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
