"""Steps: the events inside one server on the path of a message, one class for each type (HOP-2).

Every step has a `time`: RFC 3339 text with nanoseconds, as `jetstream.Timestamp.parse` reads it.
`kind` is the kind of a connection: client, router, gateway, system, leafnode, jetstream or account;
an unknown number is kept as text.
"""

from __future__ import annotations

from natsproto.wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Data: TypeAlias = "dict[str, Any]"

KINDS = ("client", "router", "gateway", "system", "leafnode", "jetstream", "account")  # HOP-3


class Step(Record):
    """The base class of all steps."""

    __slots__ = ("time",)

    def __init__(self, data: Data) -> None:
        self.time: str = text(data, "ts")

    def _fields(self) -> list[tuple[str, object]]:
        return [("time", self.time)] + super()._fields()


class Ingress(Step):
    """The message entered the server. `error` says why it was rejected; "" if it was not."""

    __slots__ = ("account", "cid", "error", "kind", "name", "subject")

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.kind: str = connection_kind(data)
        self.cid: int = number(data, "cid")
        self.name: str = text(data, "name")
        self.account: str = text(data, "acc")
        self.subject: str = text(data, "subj")
        self.error: str = text(data, "error")


class SubjectMapping(Step):
    """A mapping of the account replaced the subject by this one."""

    __slots__ = ("subject",)

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.subject: str = text(data, "to")


class StreamExport(Step):
    """The message went to another account that imports a stream, with this subject there."""

    __slots__ = ("account", "subject")

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.account: str = text(data, "acc")
        self.subject: str = text(data, "to")


class ServiceImport(Step):
    """The message went to the account of an imported service, with `to_subject` there."""

    __slots__ = ("account", "from_subject", "to_subject")

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.account: str = text(data, "acc")
        self.from_subject: str = text(data, "from")
        self.to_subject: str = text(data, "to")


class StreamStore(Step):
    """The message reached a stream of JetStream.

    no_interest: a stream with interest retention did not keep it, because no consumer needs it
    error: why the stream did not store it; "" if it did, or would have
    """

    __slots__ = ("error", "no_interest", "stream", "subject")

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.stream: str = text(data, "stream")
        self.subject: str = text(data, "subject")
        self.no_interest: bool = data.get("nointerest") is True
        self.error: str = text(data, "error")


class Egress(Step):
    """The message left the server.

    hop: the id of the next hop if another server received the message; "" for a client
    account: the account of the receiver, if it is not that of the publisher
    subscription, queue: those of a client; empty for other servers
    error: why it was not delivered, or why the next server sends no report; "" if there is none
    """

    __slots__ = (
        "account",
        "cid",
        "error",
        "hop",
        "kind",
        "name",
        "queue",
        "subscription",
    )

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.kind: str = connection_kind(data)
        self.cid: int = number(data, "cid")
        self.name: str = text(data, "name")
        self.hop: str = text(data, "hop")
        self.account: str = text(data, "acc")
        self.subscription: str = text(data, "sub")
        self.queue: str = text(data, "queue")
        self.error: str = text(data, "error")


class UnknownStep(Step):
    """A step of a type that this library does not know: `data` has its fields (D-HOP-8)."""

    __slots__ = ("data", "type")

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.type: str = text(data, "type")
        self.data: Data = data


TYPES: dict[str, type[Step]] = {  # HOP-2
    "in": Ingress,
    "sm": SubjectMapping,
    "se": StreamExport,
    "si": ServiceImport,
    "js": StreamStore,
    "eg": Egress,
}


def decode_step(data: Data) -> Step:
    """Return the step of one event; an unknown type becomes an UnknownStep."""
    return TYPES.get(text(data, "type"), UnknownStep)(data)


def error_of(step: Step) -> str:
    """Return the error of a step; "" if there is none."""
    return step.error if isinstance(step, (Ingress, StreamStore, Egress)) else ""


def connection_kind(data: Data) -> str:
    """Return the name of a kind of connection."""
    kind = number(data, "kind")
    return KINDS[kind] if 0 <= kind < len(KINDS) else str(kind)


def text(data: Data, name: str) -> str:
    """Return a text field; "" if it is absent or not text."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def number(data: Data, name: str) -> int:
    """Return a whole number; 0 if it is absent or not one."""
    value = data.get(name)
    return value if isinstance(value, int) else 0
