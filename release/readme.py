"""Run the Python blocks of the description that was installed with natsproto: for release.dist.

It runs in an environment with only natsproto and the extra `server`. Blocks that need more (trio,
Spark) are named and left out; the tests of the repository run them.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from importlib import metadata

from natsproto.testing import Server

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
USUAL = "nats://127.0.0.1:4222"
OPTIONAL = ["trio", "pyspark", "fastapi"]


def main() -> int:
    """Run them; return the exit status."""
    described = metadata.metadata("natsproto")
    text = described.get_payload() or described["Description"]
    blocks = BLOCK.findall(text)
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    ran = 0
    with Server(jetstream=True) as server:
        for block in blocks:
            needs = [name for name in missing if re.search(rf"\b{name}\b", block)]
            if needs:
                print(f"  left out: a block that needs {needs[0]}")
                continue
            code = block.replace(USUAL, server.url)
            subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
            ran += 1
    print(f"  {ran} of {len(blocks)} blocks ran")
    return 0 if ran else 1


if __name__ == "__main__":
    sys.exit(main())
