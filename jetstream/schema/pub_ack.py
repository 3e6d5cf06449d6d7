"""PubAck: the acknowledgment of a publish. Publishing needs no other response."""

from __future__ import annotations

from .fields import Field, Fields
from .types import FLAG, SEQUENCE, TEXT


class PubAck(Fields):
    """The acknowledgment of a publish: the message is stored."""

    stream: str
    seq: int
    domain: str
    duplicate: bool
    val: str
    batch: str
    count: int

    FIELDS: tuple[Field, ...] = (
        Field("stream", TEXT, "The stream."),
        Field("seq", SEQUENCE, "The sequence of the message, or of the last message of a batch."),
        Field("domain", TEXT, "The domain of the stream.", (2, 4)),
        Field(
            "duplicate", FLAG, "The stream already has a message with this id; nothing was stored."
        ),
        Field("val", TEXT, "The value of the counter after this increment.", (2, 12)),
        Field("batch", TEXT, "The id of the batch.", (2, 12)),
        Field("count", SEQUENCE, "The number of messages in the batch.", (2, 12)),
    )
