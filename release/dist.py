"""Build the distribution and check it as its users will get it: `make dist`.

    python -m release.dist [PYTHON...]

1. Build the sdist, and the wheel from it, twice, in copies of the sources at different places; the
   files must be identical, byte for byte.
2. Check the metadata, and that the description renders on an index (twine).
3. Install the wheel alone in an empty environment: it must bring nothing else. List what is in that
   environment as an SBOM in CycloneDX's format.
4. On each PYTHON (this one if none is named), install the wheel with the extra `server` in an empty
   environment, and run every Python block of README that needs no Spark.

The files are written to `dist`: the sdist, the wheel, the SBOM and SHA256SUMS.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
README = Path(__file__).with_name("readme.py")
# .gitignore, which decides what belongs to the sdist, is copied.
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".tox", ".*_cache", "__pycache__", "build", "dist"
)


def main(pythons: list[str]) -> int:
    """Build and check; return the exit status."""
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        shutil.copytree(ROOT, work / "sources", ignore=LEFT_OUT)
        shutil.copytree(work / "sources", work / "other" / "place")
        built = build(work / "sources", work / "first")
        sums = digests(built)
        again = digests(build(work / "other" / "place", work / "second"))
        if sums != again:
            raise SystemExit(f"two builds of the same sources differ: {sums} {again}")
        step("identical in two builds", *(f"{sums[each.name]}  {each.name}" for each in built))
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built))
        shutil.rmtree(DIST, ignore_errors=True)
        DIST.mkdir()
        files = [Path(shutil.copy(each, DIST)) for each in built]
        wheel = next(each for each in files if each.suffix == ".whl")
        files.append(bill_of_materials(work / "empty", wheel))
        lines = [f"{number}  {name}\n" for name, number in sorted(digests(files).items())]
        (DIST / "SHA256SUMS").write_text("".join(lines))
        for number, python in enumerate(pythons or [sys.executable]):
            try_readme(python, work / f"readme{number}", wheel)
    step("ready to be published", *sorted(each.name for each in DIST.iterdir()))
    return 0


def build(sources: Path, target: Path) -> list[Path]:
    """Return the sdist, and the wheel that was built from it."""
    run(sys.executable, "-m", "build", "--outdir", str(target), str(sources), quiet=True)
    return sorted(target.iterdir())


def digests(files: list[Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by name."""
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def bill_of_materials(home: Path, wheel: Path) -> Path:
    """Install the wheel in an environment without pip, and list its contents."""
    run(sys.executable, "-m", "venv", "--without-pip", str(home))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(home)]
    run(*pip, "install", "--quiet", str(wheel))
    names = run(*pip, "list", "--format", "freeze", quiet=True).split()
    if [each.partition("==")[0] for each in names] != ["natsproto"]:
        raise SystemExit(f"the wheel installs more than itself: {names}")
    target = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(home / "bin" / "python")]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
    run(*command, "--output-reproducible", "--output-file", str(target), quiet=True)
    listed = json.loads(target.read_text())
    # The version is not in pyproject.toml, so the tool does not know it.
    version = wheel.name.split("-")[1]
    listed["metadata"]["component"].update(version=version, purl=f"pkg:pypi/natsproto@{version}")
    target.write_text(json.dumps(listed, indent=2) + "\n")
    step("no dependencies; SBOM", target.name)
    return target


def try_readme(python: str, home: Path, wheel: Path) -> None:
    """Install the wheel as a user would, and run README there, far from the repository."""
    run(python, "-m", "venv", str(home))
    inside = str(home / "bin" / "python")
    run(
        inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"{wheel}[server]"
    )
    step("README in an empty environment", run(inside, "--version", quiet=True).strip())
    print(run(inside, str(README), cwd=home, quiet=True), end="")
    run(str(home / "bin" / "natsproto"), "--version", cwd=home)


def run(*command: str, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Run a program; return its output. End with that of a program that failed."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    pipe = subprocess.PIPE if quiet else None
    done = subprocess.run(
        command, cwd=cwd, env=env, text=True, stdout=pipe, stderr=pipe and subprocess.STDOUT
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout or ''}\nfailed: {' '.join(command)}")
    return done.stdout or ""


def step(title: str, *lines: str) -> None:
    """Print what was done."""
    print(f"{title}:", *(f"  {line}" for line in lines), sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
