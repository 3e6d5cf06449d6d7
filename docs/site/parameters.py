"""Makes lists of parameters in docstrings into Markdown lists, for the reference.

A docstring of this project has a line for each parameter that needs one:

    name     the name of the stream
    headers, msg_id
             as in `publish`
"""

from __future__ import annotations

import re

NAME = re.compile(r"(?P<names>\*{0,2}\w+(?:, \w+)*)(?:  +(?P<text>\S.*))?$")
DEEP = re.compile(r" {4,}(?P<text>\S.*)$")


def parameters(paragraph: str) -> str:
    """Return a list of parameters as a list of Markdown; return any other text unchanged."""
    items: list[list[str]] = []
    for line in paragraph.split("\n"):
        deeper = DEEP.match(line)
        found = NAME.match(line)
        if deeper and items:
            items[-1].append(deeper["text"])
        elif found and (found["text"] or "," in found["names"] or "_" in found["names"]):
            names = ", ".join(f"`{name}`" for name in found["names"].split(", "))
            items.append([f"- {names}:", *filter(None, [found["text"]])])
        else:
            return paragraph
    if any(len(item) == 1 for item in items):
        return paragraph
    return "\n".join(" ".join(item) for item in items)


def convert(docstring: str) -> str:
    """Return a docstring with its lists of parameters as Markdown."""
    return "\n\n".join(parameters(each) for each in docstring.split("\n\n"))
