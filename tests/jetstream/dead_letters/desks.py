"""Dead letters on a stage."""

from __future__ import annotations

from typing import Any

from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
from jetstream.api.client import ApiClient
from jetstream.api.stored import StoredMsg
from jetstream.dead_letters.letter import DeadLetter, Desk
from jetstream.message import JsMsg
from jetstream.publish.request import Publisher
from jetstream.schema.timestamp import Timestamp
from natsproto.wire.frames import Msg
from tests.jetstream.advisories.samples import event
from tests.jetstream.support import Stage

TIME = Timestamp.parse("2026-11-17T18:00:00Z")
ENTRY = Msg(b"s", 1, b"$JS.ACK.dead.d.1.2.3.1700000000000000001.4", b"x")


def api_of(stage: Stage) -> ApiClient:
    return ApiClient(stage.client.session, "", "$JS.API", 5.0)


def stored(**headers: str) -> StoredMsg:
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()]
    block = ("NATS/1.0\r\n" + "".join(lines) + "\r\n").encode() if headers else None
    return StoredMsg("S", "s.a", 3, TIME, b"work", block)


def letter_of(
    stage: Stage,
    message: StoredMsg | None,
    *,
    queue: bool = False,
    captured: bool = False,
    kind: str = "max_deliver",
) -> DeadLetter:
    api = api_of(stage)
    cls: Any = {"max_deliver": MaxDeliverAdvisory, "terminated": TerminatedAdvisory}[kind]
    entry = JsMsg(ENTRY, stage.client.session) if captured else None
    return DeadLetter(Desk(api, Publisher(api), queue), cls.from_json(event(kind)), message, entry)
