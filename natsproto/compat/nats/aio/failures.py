"""Errors of natsproto as errors of nats-py."""

from __future__ import annotations

import asyncio

from natsproto import errors as core
from natsproto.compat.nats import errors

# The first match wins.
_TABLE: list[tuple[type[Exception], type[errors.Error]]] = [
    (core.InvalidSubject, errors.BadSubjectError),
    (core.PayloadTooLarge, errors.MaxPayloadError),
    (core.NoResponders, errors.NoRespondersError),
    (core.MessagesUnconfirmed, errors.DrainTimeoutError),
    (core.TimeoutExpired, errors.TimeoutError),
    (core.PendingBufferFull, errors.OutboundBufferLimitError),
    (core.ConnectFailed, errors.NoServersError),
    (core.ConnectionClosed, errors.ConnectionClosedError),
    (core.AuthorizationFailed, errors.AuthorizationError),
    (core.ProtocolError, errors.ProtocolError),
]
_SERVER_ERROR = "server error: "
_NOT_BYTES = "D-ENC-6"  # the rule that a payload is bytes


class RejectedError(errors.AuthorizationError):
    """The server rejected the credentials; the text is that of the server, as in nats-py."""

    def __str__(self) -> str:
        return str(self.args[0])


class DeniedError(errors.TimeoutError):
    """The server does not permit a request.

    It is a TimeoutError, because nats-py waits for a response until then.
    """

    def __str__(self) -> str:
        return str(self.args[0])


def of_request(error: core.NatsError) -> Exception:
    """Return the exception that nats-py raises if a request fails for this reason."""
    if not isinstance(error, core.PermissionDenied):
        return translate(error)
    found = DeniedError(_text(error))
    found.__cause__ = error
    return found


def translate(error: Exception) -> Exception:
    """Return the exception that nats-py raises in the same situation.

    The original is its cause. An error that is not from natsproto is returned unchanged.
    """
    if not isinstance(error, core.NatsError):
        return error
    if isinstance(error, core.InvalidValue) and error.rule == _NOT_BYTES:
        return TypeError(str(error))
    found: Exception = errors.Error(_text(error))
    for kind, result in _TABLE:
        if isinstance(error, kind):
            found = result(str(error))
            break
    found.__cause__ = error
    return found


def of_transport(error: core.NatsError | None, cause: BaseException | None) -> Exception:
    """Return the reason why an attempt failed or a connection was lost.

    cause: the exception of the transport, which nats-py reports as it is
    """
    if isinstance(error, core.TimeoutExpired):
        return asyncio.TimeoutError()
    if isinstance(error, (core.ConnectionLost, core.TlsFailed)):
        if isinstance(cause, Exception):
            return cause
        if "PING" in str(error):
            return errors.StaleConnectionError()
        return errors.UnexpectedEOF()
    if error is None:
        return errors.UnexpectedEOF()
    if isinstance(error, core.ServerFailed) and "stale connection" in str(error).lower():
        return errors.StaleConnectionError()
    if isinstance(error, core.AuthorizationFailed) and str(error).startswith(_SERVER_ERROR):
        return RejectedError(f"nats: '{str(error)[len(_SERVER_ERROR) :]}'")
    return translate(error)


def _text(error: core.NatsError) -> str:
    text = str(error)
    if text.startswith(_SERVER_ERROR):  # nats-py has the text of the server in lower case
        return "nats: " + text[len(_SERVER_ERROR) :].lower()
    return "nats: " + text
