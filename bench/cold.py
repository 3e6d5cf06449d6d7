"""Cold starts: imports, and a whole program from its start to the first acknowledgment.

    python bench/cold.py [--quick] [--rounds N] [--only WORD ...] [--markdown]

_compare.py describes the method. Each run is a new process, with .pyc files. In the scenario
`import`, the CPU time of one import is measured, without `site`, by the statement itself. In the
other one it is that of the whole process, including the start of the interpreter, until the
acknowledgment of a message has arrived.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from _compare import NODE, Program, Scenario, compare, run_client

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _compare import Measure, Result

COLUMNS = ["CPU us", "CPU x"]
FIRST_ACK = "connect, publish, first ack"
SCENARIOS = [
    Scenario("import", "import", 1, 0, COLUMNS, quick=True, check=True, base="import nats"),
    Scenario(FIRST_ACK, "cold", 1, 0, COLUMNS, quick=True, check=True),
]
IMPORTS = [
    "import natsproto",
    "from jetstream import JetStream",
    "from jetstream.blocking import JetStream",
    "from natsproto.adapters.blocking import connect",
    "import nats",
    "from nats.client import connect",
    "import asyncio",
    "import json",
]

ASYNCIO = """
import asyncio
from jetstream import JetStream
from natsproto.adapters.asyncio import connect

async def main():
    async with await connect(url) as client:
        await JetStream(client).publish(subject, data)
        report()
"""
NATS_PY = """
import asyncio
import nats

async def main():
    client = await nats.connect(url)
    await client.jetstream().publish(subject, data)
    report()
    await client.close()
"""
BLOCKING = """
from jetstream.blocking import JetStream
from natsproto.adapters.{} import connect

with connect(url) as client:
    JetStream(client).publish(subject, data)
    report()
"""
ON_ASYNCIO = "\nasyncio.run(main())\n"
ON_UVLOOP = "\nimport uvloop\nuvloop.run(main())\n"
PROGRAMS = {
    "natsproto asyncio": ASYNCIO + ON_ASYNCIO,
    "natsproto uvloop": ASYNCIO + ON_UVLOOP,
    "natsproto trio": """
import trio
from jetstream import JetStream
from natsproto.adapters.trio import connect

async def main():
    async with connect(url) as client:
        await JetStream(client).publish(subject, data)
        report()

trio.run(main)
""",
    "natsproto blocking": BLOCKING.format("blocking"),
    "natsproto threads": BLOCKING.format("threads"),
    "nats-py": NATS_PY + ON_ASYNCIO,
    "nats-py uvloop": NATS_PY + ON_UVLOOP,
    "nats-core": """
import asyncio
from nats.client import connect
from nats.jetstream import new

async def main():
    client = await connect(url)
    await new(client).publish(subject, data)
    report()
    await client.close()
"""
    + ON_ASYNCIO,
    # The least that any Python program takes.
    "the interpreter alone": "\nreport()\n",
}
HEAD = """
import sys, time
sys.path[:0] = {paths!r}
url, subject, data = {url!r}, "cold.orders", bytes(16)

def report():
    print(time.process_time() * 1e6, flush=True)
"""
IMPORT = """
import sys, time
sys.path[:0] = {paths!r}
start = time.process_time()
{statement}
print((time.process_time() - start) * 1e6)
"""
# These keep the path and the imports of this environment out; its packages are put back in.
ISOLATED = ["-I", "-S"]


def run(code: str) -> Result:
    """Run a program in a new process; its last line is the microseconds of CPU."""
    command = [sys.executable, *ISOLATED, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        missing = "ModuleNotFoundError" in done.stderr
        if not missing:
            print(f"no result:\n{done.stderr}", file=sys.stderr)
        return {}
    return {"cpu": float(done.stdout)}


@contextmanager
def session(scenarios: list[Scenario], share: float) -> Iterator[Measure]:
    paths = [path for path in sys.path[1:] if path]
    with Server(jetstream=True) as server, connect(server.url) as client:
        js = JetStream(client)
        js.create_stream(name="COLD", subjects=["cold.>"], storage="memory", max_msgs=10)

        def measure(name: str, scenario: Scenario, count: int) -> Result:
            if scenario.kind == "import":
                if name not in IMPORTS:
                    return {}
                return run(IMPORT.format(paths=paths, statement=name))
            if name == NODE:
                return run_client("_cold.py", name, scenario, server.url)
            if name not in PROGRAMS:
                return {}
            return run(HEAD.format(paths=paths, url=server.url) + PROGRAMS[name])

        for name in IMPORTS:  # writes the .pyc files
            measure(name, SCENARIOS[0], 1)
        for name in PROGRAMS:
            measure(name, SCENARIOS[1], 1)
        yield measure


PROGRAM = Program(__doc__, SCENARIOS, dict.fromkeys([*PROGRAMS, NODE, *IMPORTS], 1), session)

if __name__ == "__main__":
    compare(PROGRAM)
