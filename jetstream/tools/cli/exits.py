"""The exit codes of the errors of JetStream; natsproto/cli/exits.py has the others."""

from __future__ import annotations

from jetstream.errors import (
    BucketNotFound,
    ConsumerNotFound,
    ConsumerUnavailable,
    JetStreamNotAvailable,
    MessageNotFound,
    NoStreamResponse,
    PublishInDoubt,
    StreamNotFound,
)
from natsproto.cli.exits import CODES as CORE
from natsproto.cli.exits import NOT_FOUND, TIMEOUT

CODES: list[tuple[type[BaseException], int]] = [
    (BucketNotFound, NOT_FOUND),
    (StreamNotFound, NOT_FOUND),
    (ConsumerNotFound, NOT_FOUND),
    (ConsumerUnavailable, NOT_FOUND),
    (MessageNotFound, NOT_FOUND),
    (NoStreamResponse, NOT_FOUND),
    (JetStreamNotAvailable, NOT_FOUND),
    (PublishInDoubt, TIMEOUT),
    *CORE,
]
