"""Options for the fields of a configuration: --max-age 1h for max_age, and so on.

They are made from the tables of jetstream/schema: every field has its option (D-CLI-8). Objects,
such as the mirror of a stream, are given as JSON, in the form of the server. --config reads a whole
configuration from a file; options change fields of it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetstream.schema.types import (
    COUNT,
    DURATION,
    DURATIONS,
    FLAG,
    MAP,
    TEXT,
    TEXTS,
    TIME,
    Choice,
)
from natsproto.cli.options import seconds, size
from natsproto.errors import InvalidValue

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from jetstream.schema.fields import Field, Fields

_PREFIX = "field_"


def add_fields(parser: ArgumentParser, cls: type[Fields], skip: set[str]) -> None:
    """Add an option for each field of the class, except those to skip."""
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration in JSON, as `info --json` prints it"
    )
    group = parser.add_argument_group("fields of the configuration")
    for field in cls.FIELDS:
        if field.name in skip:
            continue
        flag = "--" + field.name.replace("_", "-")
        given: dict[str, Any] = {"dest": _PREFIX + field.name, "default": argparse.SUPPRESS}
        given["help"] = field.doc.replace("%", "%%")
        given.update(_arguments(field))
        group.add_argument(flag, **given)


def config_of(args: Namespace, cls: type[Fields]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the configuration of --config, None without it, and the fields that options give."""
    config: dict[str, Any] | None = None
    if args.config:
        try:
            config = json.loads(Path(args.config).read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidValue(f"{args.config} is not JSON: {error}") from None
        if isinstance(config, dict) and isinstance(config.get("config"), dict):
            config = config["config"]  # a whole info
    names = [field.name for field in cls.FIELDS if hasattr(args, _PREFIX + field.name)]
    return config, {name: getattr(args, _PREFIX + name) for name in names}


def _arguments(field: Field) -> dict[str, Any]:
    kind = field.type
    if isinstance(kind, Choice):
        return {"choices": kind.values}
    if kind is FLAG:
        return {"action": argparse.BooleanOptionalAction}
    if kind in (TEXT, TIME):
        return {"metavar": "TEXT" if kind is TEXT else "TIME"}
    if kind is DURATION:
        return {"type": seconds, "metavar": "SECONDS"}
    if kind is DURATIONS:
        return {"type": seconds, "nargs": "+", "metavar": "SECONDS"}
    if kind is TEXTS:
        return {"nargs": "+", "metavar": "TEXT"}
    if kind is MAP:
        return {"type": _pair, "action": _Pairs, "metavar": "KEY=VALUE"}
    if isinstance(kind, type(COUNT)):
        if field.name.endswith(("bytes", "size")):
            return {"type": size, "metavar": "SIZE"}
        return {"type": int, "metavar": "N"}
    return {"type": json_value, "metavar": "JSON"}


class _Pairs(argparse.Action):
    """Collects KEY=VALUE in a dict."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        pairs: dict[str, str] = getattr(namespace, self.dest, {})
        setattr(namespace, self.dest, {**pairs, values[0]: values[1]})


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"not KEY=VALUE: {text!r}")
    return key, value


def json_value(text: str) -> Any:
    """Read a value in JSON."""
    try:
        return json.loads(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not JSON: {text!r}") from None
