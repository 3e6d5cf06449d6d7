"""Writes the table of options in docs/spark.md: `python docs/spark_options.py`.

A test checks that the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).with_name("spark.md")
sys.path.insert(0, str(ROOT))

from jetstream.spark.option_table import BATCH, OPTIONS, STREAM, WRITE  # noqa: E402

BEGIN = "<!-- options: written by docs/spark_options.py -->\n"
END = "<!-- end of options -->\n"
MARKS = [(BATCH, "B"), (STREAM, "S"), (WRITE, "W")]


def table() -> str:
    lines = ["| option | for | type | default | meaning |", "|---|---|---|---|---|"]
    for option in OPTIONS:
        places = " ".join(mark for where, mark in MARKS if where in option.where)
        default = "" if option.default is None else f"`{option.default}`"
        type_ = option.type.name.replace("|", "\\|")
        lines.append(f"| `{option.name}` | {places} | {type_} | {default} | {option.help} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return docs/spark.md with an up-to-date table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
