"""`python -m jetstream.tools.cli`: the command `natsproto` where it is not on the path."""

from __future__ import annotations

import sys

from jetstream.tools.cli.main import main

sys.exit(main())
