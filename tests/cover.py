"""Each core module is covered by its own test module alone, every line and every branch.

natsproto/parser.py belongs to tests/wire/test_parser.py or tests/connection/test_parser.py,
jetstream/pull.py to tests/machines/test_pull.py. What other tests happen to run does not count:
each module is measured in a process of its own. Where there is fork, that process starts where
pytest, its plugins and coverage have run once, which saves two thirds of the time; nothing of the
core is imported before it starts.
"""

from __future__ import annotations

import contextlib
import gc
import io
import multiprocessing
import os
import sys
from pathlib import Path

import coverage
import pytest

from tests.core import MODULES, ROOT, name

HOMES = {"natsproto": ["wire", "connection"], "jetstream": ["machines"]}
HOW = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
# The warning is about hypothesis: its asserts are not rewritten if it is imported before.
OPTIONS = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


def own_tests(module: Path) -> list[str]:
    """test_parser.py, and those of one subject of it, such as test_parser_limits.py."""
    stems = [other.stem for other in MODULES if other.parent == module.parent]
    homes = [ROOT / "tests" / home for home in HOMES[module.parent.name]]
    paths = [path for home in homes for path in sorted(home.glob("test_*.py"))]
    return [name(path) for path in paths if owner(path, stems) == module.stem]


def owner(test: Path, stems: list[str]) -> str:
    """The module that a test is about: for test_kv_watch.py kv_watch, though there is a kv."""
    whole = test.stem.removeprefix("test_") + "_"
    fits = [stem for stem in stems if whole.startswith(stem.lstrip("_") + "_")]
    return max(fits, key=len, default="")


def measure(module: Path) -> tuple[float, str]:
    """Percent covered by its own tests, and what to show where that is not all."""
    tests = own_tests(module)
    if not tests:
        return 0.0, f"it has no test_{module.stem.lstrip('_')}.py of its own"
    return run(module, tests)


def run(module: Path, tests: list[str]) -> tuple[float, str]:
    os.chdir(ROOT)
    measured = coverage.Coverage(branch=True, include=[str(module)], data_file=None)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        measured.start()
        failed = pytest.main([*OPTIONS, *tests])
        measured.stop()
    if failed:
        return 0.0, said.getvalue()
    table = io.StringIO()
    percent = measured.report(show_missing=True, file=table)
    return percent, table.getvalue()


def warm_up() -> None:
    """Once before the fork what each of them would do: imports, plugins, the look at all files."""
    percent, detail = run(ROOT / "tests/rules.py", ["tests/test_rules.py"])
    assert percent > 0, detail
    assert not {"natsproto", "jetstream"} & set(sys.modules), "imported before it is measured"
    gc.freeze()


def main() -> int:
    if HOW == "fork":
        warm_up()
    modules = [module for module in MODULES if module.name != "__init__.py"]
    processes = multiprocessing.get_context(HOW).Pool(os.cpu_count(), maxtasksperchild=1)
    with processes as pool:
        results = dict(zip(modules, pool.map(measure, modules, chunksize=1)))
    for module, (percent, _) in results.items():
        print(f"{name(module):32} {percent:6.1f} %  {' '.join(own_tests(module))}")
    short = {module: detail for module, (percent, detail) in results.items() if percent < 100}
    for module, detail in short.items():
        print(f"\n{name(module)} is not covered by its own tests:\n{detail}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
