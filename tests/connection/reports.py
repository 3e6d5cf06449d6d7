"""Reports on the path of a message, recorded from nats-server 2.15.1 and shortened."""

from __future__ import annotations

import json
from typing import Any

DEST = {"Nats-Trace-Dest": ["T.1"], "Nats-Trace-Only": ["true"]}
TIME = "2026-11-17T21:06:02.667251796Z"


def event(type_: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": type_, "ts": TIME, **fields}


def report(name: str, events: list[Any], hop: str = "", hops: int = 0, **more: Any) -> bytes:
    """Return a report of the server with this name."""
    header = {**DEST, "Nats-Trace-Hop": [hop]} if hop else DEST
    server = {"name": name, "host": "127.0.0.1", "cluster": "test", "ver": "2.15.1", "flags": 7}
    body = {"server": server, "request": {"header": header, "msgsize": 62}, "events": events}
    if hops:
        body["hops"] = hops
    return json.dumps({**body, **more}).encode()


IN = event("in", kind=0, cid=5, name="tracer", acc="$G", subj="a")
OUT = event("eg", kind=0, cid=5, name="tracer", sub="a.*", queue="w")
ALONE = report("s1", [IN, OUT])

# A cluster of three: the origin reported last.
S3 = report(
    "s3",
    [
        event("in", kind=1, cid=15, name="s1", acc="$G", subj="k"),
        event("eg", kind=0, cid=21, name="s3c", sub="k"),
    ],
    hop="1",
)
S2 = report(
    "s2",
    [
        event("in", kind=1, cid=18, name="s1", acc="$G", subj="k"),
        event("eg", kind=0, cid=21, name="s2c", sub="k"),
    ],
    hop="2",
)
S1 = report(
    "s1",
    [
        event("in", kind=0, cid=21, name="s1c", acc="$G", subj="k"),
        event("eg", kind=1, cid=15, name="s3", hop="1"),
        event("eg", kind=1, cid=19, name="s2", hop="2"),
    ],
    hops=2,
)
