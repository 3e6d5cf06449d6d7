"""The old names of the exceptions, which nats-py keeps in `nats.aio.errors`.

Each is a subclass of the exception with the present name, as in nats-py: `except` with the present
name catches both. The client itself raises only the present ones.
"""

from __future__ import annotations

from natsproto.compat.nats import errors


class NatsError(errors.Error):
    """The old name of Error."""


class ErrConnectionClosed(errors.ConnectionClosedError):
    """The old name of ConnectionClosedError."""


class ErrDrainTimeout(errors.DrainTimeoutError):
    """The old name of DrainTimeoutError."""


class ErrInvalidUserCredentials(errors.InvalidUserCredentialsError):
    """The old name of InvalidUserCredentialsError."""


class ErrInvalidCallbackType(errors.InvalidCallbackTypeError):
    """The old name of InvalidCallbackTypeError."""


class ErrConnectionReconnecting(errors.ConnectionReconnectingError):
    """The old name of ConnectionReconnectingError."""


class ErrConnectionDraining(errors.ConnectionDrainingError):
    """The old name of ConnectionDrainingError."""


class ErrMaxPayload(errors.MaxPayloadError):
    """The old name of MaxPayloadError."""


class ErrStaleConnection(errors.StaleConnectionError):
    """The old name of StaleConnectionError."""


class ErrJsonParse(errors.JsonParseError):
    """The old name of JsonParseError."""


class ErrSecureConnRequired(errors.SecureConnRequiredError):
    """The old name of SecureConnRequiredError."""


class ErrSecureConnWanted(errors.SecureConnWantedError):
    """The old name of SecureConnWantedError."""


class ErrSecureConnFailed(errors.SecureConnFailedError):
    """The old name of SecureConnFailedError."""


class ErrBadSubscription(errors.BadSubscriptionError):
    """The old name of BadSubscriptionError."""


class ErrBadSubject(errors.BadSubjectError):
    """The old name of BadSubjectError."""


class ErrSlowConsumer(errors.SlowConsumerError):
    """The old name of SlowConsumerError."""


class ErrTimeout(errors.TimeoutError):
    """The old name of TimeoutError."""


class ErrBadTimeout(errors.BadTimeoutError):
    """The old name of BadTimeoutError."""


class ErrAuthorization(errors.AuthorizationError):
    """The old name of AuthorizationError."""


class ErrNoServers(errors.NoServersError):
    """The old name of NoServersError."""
