"""Each core module is covered by its own test module alone, every line and every branch.

natsproto/parser.py belongs to tests/wire/test_parser.py or tests/connection/test_parser.py,
jetstream/pull.py to tests/machines/test_pull.py. What other tests happen to run does not count.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import coverage

from tests.core import MODULES, ROOT, name

HOMES = {"natsproto": ["wire", "connection"], "jetstream": ["machines"]}


def own_tests(module: Path) -> list[str]:
    file = f"test_{module.stem.lstrip('_')}.py"
    paths = [ROOT / "tests" / home / file for home in HOMES[module.parent.name]]
    return [name(path) for path in paths if path.exists()]


def measure(module: Path, tests: list[str]) -> tuple[float, str]:
    """Percent covered, and what to show where that is not all."""
    with tempfile.TemporaryDirectory() as directory:
        data = str(Path(directory) / "coverage")
        command = [sys.executable, "-m", "coverage", "run", "--branch", f"--data-file={data}"]
        command += [f"--include={module}", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if run.returncode != 0:
            return 0.0, run.stdout + run.stderr
        report = coverage.Coverage(data_file=data)
        report.load()
        table = io.StringIO()
        percent = report.report(show_missing=True, file=table)
        return percent, table.getvalue()


def check(module: Path) -> tuple[float, str]:
    tests = own_tests(module)
    if not tests:
        return 0.0, f"it has no test_{module.stem.lstrip('_')}.py of its own"
    return measure(module, tests)


def main() -> int:
    modules = [module for module in MODULES if module.name != "__init__.py"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(modules, pool.map(check, modules)))
    for module, (percent, _) in results.items():
        print(f"{name(module):32} {percent:6.1f} %  {' '.join(own_tests(module))}")
    short = {module: detail for module, (percent, detail) in results.items() if percent < 100}
    for module, detail in short.items():
        print(f"\n{name(module)} is not covered by its own tests:\n{detail}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
