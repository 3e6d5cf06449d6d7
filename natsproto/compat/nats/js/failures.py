"""Errors of jetstream as errors of nats-py."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from jetstream import errors as core
from jetstream.errors.api import ApiError
from jetstream.errors.binding import BindRefused
from natsproto.compat.nats import errors as base
from natsproto.compat.nats.aio.failures import translate as translate_core
from natsproto.errors import NatsError

from . import errors


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
        found = errors.APIError(code=getattr(error, "status", None), description=_reason(error))
    elif isinstance(error, BindRefused):
        found = errors.Error(str(error))
    elif isinstance(error, core.NotJetStreamMessage):
        found = base.NotJSMessageError()
    else:
        return translate_core(error)
    found.__cause__ = error
    return found


@contextmanager
def translating() -> Generator[None, None, None]:
    """Raise the errors of nats-py in a block that calls jetstream."""
    try:
        yield
    except NatsError as error:
        raise translate(error) from error


def _reason(error: core.PullFailed) -> str:
    return getattr(error, "description", "") or str(error)
