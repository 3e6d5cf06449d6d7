"""`python -m natsproto`: publish, subscribe and request from a shell; see natsproto/cli."""

from __future__ import annotations

import sys

from natsproto.cli.main import main

sys.exit(main())
