"""The tests of the core, and that those of each module cover every line and branch of it.

natsproto/wire/parser.py belongs to test_parser.py in tests/wire or tests/connection, and
jetstream/kv/store.py to tests/jetstream/kv/test_store.py: these tests alone run every line and
every branch of it. Lines that other tests happen to run do not count. A room with code in its
__init__.py belongs to a test of its name, as jetstream/errors to errors/test_errors.py. The other
files of these folders, such as test_vectors.py, run without being measured, so that no test of the
core has to run anywhere else.

Each module has a process of its own, a fork of one where pytest is ready to collect tests; that
saves two thirds of the time. Nothing of the core is imported before the fork.

    python -m tests.cover                               every module
    python -m tests.cover natsproto/wire/parser.py      only these modules
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from tests import rules
from tests.core import MODULES, ROOT, name

HOMES = {"natsproto": ["wire", "connection"], "jetstream": ["jetstream"]}
# Captured output stays in memory: the forks would share a file.
OPTIONS = ["-q", "-p", "no:cacheprovider", "--capture=sys"]


class Job(NamedTuple):
    """The work of one process."""

    tests: list[Path]
    module: Path | None = None  # to be measured


class Result(NamedTuple):
    """The outcome of a job."""

    ok: bool
    percent: float | None
    said: str  # by pytest if a test failed, by coverage otherwise

    def line(self, job: Job) -> str:
        what = name(job.module) if job.module else "-"
        percent = "" if self.percent is None else f"{self.percent:6.1f} %"
        return f"{what:40} {percent:8}  {' '.join(map(name, job.tests))}"


def own_tests(module: Path) -> list[Path]:
    """Return test_parser.py, and tests of one of its topics, such as test_parser_limits.py."""
    folders = test_folders(module)
    stems = [subject(other) for other in MEASURED if test_folders(other) == folders]
    paths = [path for folder in folders for path in sorted(folder.glob("test_*.py"))]
    return [path for path in paths if owner(path, stems) == subject(module)]


def test_folders(module: Path) -> list[Path]:
    """Return where a module's tests are: those of jetstream mirror its rooms."""
    package, *room = module.relative_to(ROOT).parent.parts
    below = room if package == "jetstream" else []
    return [ROOT.joinpath("tests", home, *below) for home in HOMES[package]]


def subject(module: Path) -> str:
    """Return the name of a module, or of the package that it is the __init__ of."""
    return module.parent.name if module.name == "__init__.py" else module.stem


def owner(test: Path, stems: list[str]) -> str:
    """Return the tested module: window_machine for test_window_machine.py, though window fits."""
    whole = test.stem.removeprefix("test_") + "_"
    fits = [stem for stem in stems if whole.startswith(stem + "_")]
    return max(fits, key=len, default="")


def is_measured(module: Path) -> bool:
    """Exclude the two packages themselves (see tests/test_law.py) and rooms without code."""
    if module.parent.parent == ROOT:
        return module.name != "__init__.py"
    return len(ast.parse(module.read_text(encoding="utf-8")).body) > 1


MEASURED = [module for module in MODULES if is_measured(module)]


def all_jobs() -> list[Job]:
    """Return all jobs, those without a module first, because the longest are among them."""
    measured = [Job(own_tests(module), module) for module in MEASURED]
    known = {path for job in measured for path in job.tests}
    homes = [ROOT / "tests" / home for package in HOMES.values() for home in package]
    files = [path for home in homes for path in sorted(home.rglob("test_*.py"))]
    return [Job([path]) for path in files if path not in known] + measured


class Forks:
    """A plugin that gives each job a process, as soon as pytest is about to collect tests.

    In the fork `job` is set, and pytest continues with the tests of that job. The parent stops.
    """

    def __init__(self, jobs: list[Job], directory: Path) -> None:
        self.job: Job | None = None
        self.results: dict[int, Result] = {}
        self._jobs = jobs
        self._directory = directory
        self._running: dict[int, int] = {}  # process: number of its job
        self._measured: coverage.Coverage | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        imported = {module.partition(".")[0] for module in sys.modules}
        assert not imported & set(HOMES), "imported before it is measured"
        gc.freeze()
        for number, job in enumerate(self._jobs):
            if not job.tests:
                self.results[number] = Result(False, 0.0, "it has no test module of its own")
                continue
            if len(self._running) == os.cpu_count():
                self._wait()
            child = os.fork()
            if child == 0:
                self._begin(job, session)
                return None
            self._running[child] = number
        while self._running:
            self._wait()
        return True

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore other files: there are a hundred in a folder."""
        foreign = self.job is not None and collection_path not in self.job.tests
        return True if foreign and collection_path.suffix == ".py" else None

    def _begin(self, job: Job, session: pytest.Session) -> None:
        self.job = job
        session.config.args[:] = map(str, job.tests)
        if job.module is not None:
            self._measured = coverage.Coverage(
                branch=True, include=[str(job.module)], data_file=None
            )
            self._measured.start()

    def end(self, failed: bool, said: str) -> None:
        """Write the result to its file, in the fork."""
        percent, table = None, io.StringIO()
        if self._measured is not None:
            self._measured.stop()
            percent = 0.0 if failed else self._measured.report(show_missing=True, file=table)
        ok = not failed and percent in (None, 100.0)
        result = Result(ok, percent, said if failed else table.getvalue())
        (self._directory / str(os.getpid())).write_text(json.dumps(result), encoding="utf-8")

    def _wait(self) -> None:
        child, status = os.wait()
        result = Result(False, None, f"its process ended with status {status}")
        if status == 0:
            text = (self._directory / str(child)).read_text(encoding="utf-8")
            result = Result(*json.loads(text))
        self.results[self._running.pop(child)] = result


def warm_up() -> None:
    """Import, once before the forks, the modules that coverage would import in each of them."""
    measured = coverage.Coverage(branch=True, include=[rules.__file__], data_file=None)
    measured.start()
    rules.read_rules()
    measured.stop()
    measured.report(file=io.StringIO())


def run(jobs: list[Job]) -> list[Result]:
    os.chdir(ROOT)
    warm_up()
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as directory:
        forks = Forks(jobs, Path(directory))
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = pytest.main([*OPTIONS, "tests"], plugins=[forks])
        if forks.job is not None:
            forks.end(code != pytest.ExitCode.OK, said.getvalue())
            os._exit(0)
    if len(forks.results) < len(jobs):
        raise RuntimeError(said.getvalue())
    return [forks.results[number] for number in range(len(jobs))]


def read_arguments() -> list[Path]:
    """Return the modules of the command line; none for all of them."""
    parser = argparse.ArgumentParser("python -m tests.cover", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    modules = [ROOT / each for each in parser.parse_args().modules]
    for module in modules:
        if module not in MEASURED:
            parser.error(f"not a module of the core: {module}")
    return modules


def main() -> int:
    modules = read_arguments()
    jobs = [job for job in all_jobs() if not modules or job.module in modules]
    results = run(jobs)
    for job, result in zip(jobs, results):
        print(result.line(job))
    short = [(job, result) for job, result in zip(jobs, results) if not result.ok]
    for job, result in short:
        print(f"\n{result.line(job)}\n{result.said}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
