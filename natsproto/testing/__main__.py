"""Run the checks of the core on an adapter: `python -m natsproto.testing MODULE:connect`."""

import sys

from natsproto.testing import CHECKS
from natsproto.testing.command import main

if __name__ == "__main__":
    sys.exit(main("natsproto.testing", CHECKS))
