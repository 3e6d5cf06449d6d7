"""An extension of Griffe, which reads the sources for mkdocstrings: see parameters.py."""

from __future__ import annotations

from typing import Any

import griffe

from docs.site.parameters import convert


class Parameters(griffe.Extension):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = convert(obj.docstring.value)
