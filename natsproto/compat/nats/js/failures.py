"""Errors of jetstream as errors of nats-py."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jetstream import errors as core
from jetstream.errors.api import ApiError
from jetstream.errors.binding import BindRefused
from natsproto.compat.nats import errors as base
from natsproto.compat.nats.aio.failures import of_request
from natsproto.errors import NatsError

from . import errors

if TYPE_CHECKING:
    from natsproto.compat.nats.aio.client import Client

_UNAVAILABLE = 503


def translate(error: Exception) -> Exception:
    """Return the exception that nats-py raises in the same situation."""
    found: Exception
    if isinstance(error, ApiError):
        given = {
            "code": error.code,
            "err_code": error.err_code,
            "description": error.description,
        }
        try:
            errors.APIError.from_error(given)
        except errors.APIError as made:
            found = made
    elif isinstance(error, core.NoStreamResponse):
        found = errors.NoStreamResponseError()
    elif isinstance(error, core.JetStreamNotAvailable):
        found = errors.ServiceUnavailableError(code=503, description=str(error))
    elif isinstance(error, core.PullFailed):
        unavailable = error.code == _UNAVAILABLE
        kind = errors.ServiceUnavailableError if unavailable else errors.APIError
        found = kind(code=error.code, description=error.description or str(error))
    elif isinstance(error, BindRefused):
        found = errors.Error(str(error))
    elif isinstance(error, core.NotJetStreamMessage):
        found = base.NotJSMessageError()
    else:
        return of_request(error) if isinstance(error, NatsError) else error
    found.__cause__ = error
    return found


@contextmanager
def translating() -> Generator[None, None, None]:
    """Raise the errors of nats-py in a block that calls jetstream."""
    try:
        yield
    except NatsError as error:
        raise translate(error) from error


def after_end(conn: Client) -> base.Error:
    """Return the error for reading what has ended: the connection, or only the subscription."""
    return base.ConnectionClosedError() if conn.is_closed else base.BadSubscriptionError()
