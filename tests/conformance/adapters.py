"""Run the whole conformance suite on the adapters that are named: `make adapters`."""

from __future__ import annotations

import subprocess
import sys

from tests.core import ROOT

COMMANDS = {
    "poll": ["natsproto.adapters.poll:connect"],
    "anyio": ["natsproto.adapters.anyio:connect"],
    "anyio-trio": ["natsproto.adapters.anyio:connect", "--runner", "anyio-trio"],
    "gevent": [
        "examples.gevent_adapter:connect",
        "--runner=examples.gevent_runner:GeventRunner",
    ],
    "twisted": [
        "examples.twisted_adapter:connect",
        "--runner=examples.twisted_runner:TwistedRunner",
    ],
}


def main(names: list[str]) -> int:
    """Run one after the other, and return the number of adapters that failed."""
    failed = 0
    for name in names:
        print(f"--- {name}", flush=True)
        command = [sys.executable, "-W", "error", "-m", "jetstream.testing", *COMMANDS[name]]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(COMMANDS)))
