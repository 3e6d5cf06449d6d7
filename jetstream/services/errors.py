"""The headers of an error: written by services of this library, and read from any answer."""

from __future__ import annotations

from jetstream.errors import ServiceError
from natsproto.errors import HeaderError
from natsproto.wire.headers import Headers
from natsproto.wire.text import cut_middle

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import HeadersLike

ERROR = "Nats-Service-Error"
CODE = "Nats-Service-Error-Code"
#: The code of an exception that is not a ServiceError (D-SERVICE-6).
INTERNAL = 500
#: The code of a request that the service cannot accept.
UNAVAILABLE = 503
STOPPED = "service stopped before it handled the request"
OVERLOADED = "service has too many pending requests"
_DIGITS = "0123456789"
_MAX_DIGITS = 18


def error_headers(code: int, text: str, headers: HeadersLike | None = None) -> Headers:
    """Return the headers of an error (SERVICE-20), after further headers of the answer.

    Characters that no header can contain are replaced by spaces.
    """
    made = Headers() if headers is None else Headers(headers)
    made.set(ERROR, _one_line(text))
    made.set(CODE, "%d" % code)  # SERVICE-21
    return made


def _one_line(text: str) -> str:
    # A header is one line, and a lone surrogate has no UTF-8.
    plain = [char if char >= " " and not 0xD800 <= ord(char) <= 0xDFFF else " " for char in text]
    return "".join(plain).strip() or "error"


def describe(error: Exception) -> str:
    """Return the text of an exception that a handler raised, for the answer and STATS."""
    if isinstance(error, ServiceError):
        return str(error)
    text = str(error)
    name = type(error).__name__
    return cut_middle("%s: %s" % (name, text) if text else name)


def as_service_error(error: Exception) -> ServiceError:
    """Return the error to answer with; one that is not a ServiceError becomes a 500."""
    if isinstance(error, ServiceError):
        return error
    return ServiceError(INTERNAL, describe(error))


def service_error(msg: Msg) -> ServiceError | None:
    """Return the error in an answer; None if the answer is not an error.

    A code that is not a number is read as 0.
    """
    try:
        headers = msg.headers
    except HeaderError:
        return None  # a mistake of the sender, not an error of a service
    if headers is None or not (ERROR in headers or CODE in headers):
        return None
    code = headers.get(CODE)
    is_number = 0 < len(code) <= _MAX_DIGITS and all(char in _DIGITS for char in code)
    number = int(code) if is_number else 0
    return ServiceError(number, headers.get(ERROR) or "error", msg.data, headers)
