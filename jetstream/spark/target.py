"""The checks of a write before it starts: whether the stream will take the rows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jetstream.errors import JetStreamNotAvailable, TemporarilyUnavailable
from natsproto.errors import ConnectionClosed, InvalidValue, PermissionDenied, TimeoutExpired
from natsproto.wire.text import shorten

from .connect import jetstream

if TYPE_CHECKING:
    from .options import Settings

logger: logging.Logger = logging.getLogger("jetstream.spark")
# Errors of a lookup on the driver, after which tasks may still be able to write.
_LOOKUP_FAILED = (
    ConnectionClosed,
    JetStreamNotAvailable,
    PermissionDenied,
    TemporarilyUnavailable,
    TimeoutExpired,
)


def check_target(settings: Settings, write_id: str, types: dict[str, str]) -> None:
    """Raise InvalidValue if the stream will reject the rows; warn if its window is too short.

    Checks nothing without a connection, or without the permission to look up the stream: a driver
    may have neither.
    """
    try:
        js = jetstream(settings)
        name = "".join(settings.list("stream"))
        if not name and settings.given("subject") and "subject" not in types:
            name = js.stream_name_by_subject(settings.text("subject"))
        if not name:
            return
        config = js.stream(name).cached_info.config
        delivery = settings.text("delivery")
        if delivery == "fast" and not config.allow_batched:
            raise InvalidValue("delivery=fast: stream %s does not have allow_batched" % name)
        if delivery == "atomic":
            markers = "%s.%s.0" % (settings.text("markerSubject"), write_id)
            if not config.allow_atomic:
                raise InvalidValue("delivery=atomic: stream %s does not have allow_atomic" % name)
            if js.stream_names(markers) != [name]:
                text = "option markerSubject: stream %s does not accept %s"
                raise InvalidValue(text % (name, shorten(markers)))
    except _LOOKUP_FAILED as error:
        logger.warning("the stream could not be looked up and is not checked: %s", error)
        return
    if "ttl" in types and not config.allow_msg_ttl:
        raise InvalidValue("column ttl: stream %s does not have allow_msg_ttl" % name)
    if delivery == "dedup":
        _check_window(name, config.duplicate_window, settings.seconds("minDuplicateWindow"))


def _check_window(name: str, window: float, least: float) -> None:
    if window < least:
        logger.warning(
            "stream %s has a duplicate_window of %g s: rows that a retried task or a restarted"
            " query writes again after that are stored twice. Use at least %g s (option"
            " minDuplicateWindow), or delivery=atomic, which needs no window",
            name,
            window,
            least,
        )
