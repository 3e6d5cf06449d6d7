"""Writes the table of options in docs/client.md from natsproto.options: `python docs/options.py`.

A test checks that the page is up to date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).with_name("client.md")
sys.path.insert(0, str(ROOT))

from natsproto.options import Options  # noqa: E402

BEGIN = "<!-- options: written by docs/options.py -->\n"
END = "<!-- end of options -->\n"
MIB = 1024 * 1024


def described() -> list[tuple[list[str], str]]:
    """Return the options in the docstring: their names and meanings."""
    rows: list[tuple[list[str], str]] = []
    for line in inspect.getdoc(Options).splitlines()[2:]:
        names, _, meaning = line.partition("  ")
        if names:
            rows.append((names.replace(",", " ").split(), meaning.strip()))
        else:  # continues the text of the previous line
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {meaning.strip()}".strip())
    return rows


def shown(value: object) -> str:
    if isinstance(value, int) and value >= MIB and value % MIB == 0:
        return f"{value // MIB} MiB"
    return f"`{value!r}`"


def table() -> str:
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(Options).parameters.items()
    }
    rows = described()
    alone = {name for names, _ in rows for name in names}
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for names, meaning in rows:
        # An option that is explained with another one: reconnect_wait_max.
        names += [word for word in meaning.split() if word in defaults and word not in alone]
        values = (
            "none"
            if "password" in names
            else ", ".join(dict.fromkeys(shown(defaults[name]) for name in names))
        )
        lines.append(f"| {' '.join(f'`{name}`' for name in names)} | {values} | {meaning} |")
        for name in names:
            del defaults[name]
    assert not defaults, f"the docstring of Options says nothing about {list(defaults)}"
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return docs/client.md with an up-to-date table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
