"""Writes docs/jetstream-fields.md from the tables of fields: `python docs/fields.py`.

A test checks that the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
PAGE = Path(__file__).with_name("jetstream-fields.md")
sys.path.insert(0, str(ROOT))

from jetstream.advisories import consumers, event, latency, servers, streams  # noqa: E402
from jetstream.kv import config as kv_config  # noqa: E402
from jetstream.objects import config as object_config  # noqa: E402
from jetstream.objects import info as object_info  # noqa: E402
from jetstream.schema import (  # noqa: E402
    account_info,
    cluster_info,
    consumer_config,
    consumer_info,
    pub_ack,
    stream_config,
    stream_info,
)
from jetstream.schema import stream_sources as stream_source  # noqa: E402
from jetstream.schema.fields import Fields  # noqa: E402

HEAD = """\
# Fields of JetStream's objects

Written by docs/fields.py from the tables in the code. Names are the same in Python and in JSON.
Durations are seconds in Python, or a timedelta, and nanoseconds in JSON. A time is a
`jetstream.Timestamp`; RFC 3339 text, an aware datetime, or nanoseconds since 1970 are accepted,
too. Fields that are not set are not sent, and the server's defaults apply. The last column is the
first release of nats-server that has the field. A bucket has field names of its own and no JSON
form: it is stored as a stream.
"""
CHAPTERS = [
    ("Configuration of streams", [stream_config, stream_source], ["StreamConfig"]),
    ("Configuration of consumers", [consumer_config], ["ConsumerConfig"]),
    ("Configuration of buckets", [kv_config], ["KeyValueConfig"]),
    ("Configuration of buckets of objects", [object_config], ["ObjectStoreConfig"]),
    ("Information about objects", [object_info], ["ObjectInfo", "ObjectMeta"]),
    (
        "Responses of the server",
        [stream_info, consumer_info, pub_ack, account_info, cluster_info],
        ["StreamInfo", "ConsumerInfo", "AccountInfo", "PubAck"],
    ),
    ("Advisories", [event, streams, consumers, servers, latency], ["Advisory"]),
]


def classes(modules: list[ModuleType], first: list[str]) -> list[type[Fields]]:
    """Return the classes of the modules: the named ones first, the others in source order."""
    own = [
        cls
        for module in modules
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Fields) and cls.__module__ == module.__name__
    ]
    rank = {name: number for number, name in enumerate(first)}
    return sorted(own, key=lambda cls: rank.get(cls.__name__, len(rank)))


def label(type: object, known: dict[str, str]) -> str:
    """Return the name of a type, with a link where it is an object."""
    text: str = type.label
    for name in sorted(known, key=len, reverse=True):
        if text.endswith(name):
            return f"{text.removesuffix(name)}[{name}](#{known[name]})"
    return text


def section(cls: type[Fields], known: dict[str, str]) -> str:
    lines = [f"### {cls.__name__}", "", cls.__doc__.partition("\n")[0], ""]
    lines += ["| Field | Type | Meaning | Since |", "|---|---|---|---|"]
    for field in cls.FIELDS:
        since = ".".join(map(str, field.since))
        lines.append(f"| `{field.name}` | {label(field.type, known)} | {field.doc} | {since} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    chapters = [(title, classes(modules, first)) for title, modules, first in CHAPTERS]
    known = {cls.__name__: cls.__name__.lower() for _, found in chapters for cls in found}
    parts = [HEAD]
    for title, found in chapters:
        parts.append(f"## {title}\n")
        parts += [section(cls, known) for cls in found]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
