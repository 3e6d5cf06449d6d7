"""Run all checks, also those of the core: `python -m jetstream.testing MODULE:connect`."""

import sys

from jetstream.testing import CHECKS
from natsproto import testing
from natsproto.testing.command import main

if __name__ == "__main__":
    sys.exit(main("jetstream.testing", {**testing.CHECKS, **CHECKS}))
