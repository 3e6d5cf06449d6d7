"""ServiceError: the error of a service. Import it from jetstream.errors, which has the tree."""

from __future__ import annotations

from natsproto.errors import InvalidValue, RemoteError
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.wire.encode import BytesLike
    from natsproto.wire.headers import HeadersLike


class ServiceError(RemoteError):
    """A service answered with an error; handlers raise it to do so.

    code     a number, often one of HTTP
    text     a description for people
    data     the payload of the answer
    headers  further headers of the answer
    """

    def __init__(
        self, code: int, text: str, data: BytesLike = b"", headers: HeadersLike | None = None
    ) -> None:
        if not isinstance(code, int) or isinstance(code, bool) or code < 0:
            reason = "error code is not a whole number: %s" % shorten(code)
            raise InvalidValue(reason, "SERVICE-21")
        if not isinstance(text, str) or not text:
            reason = "error text is not a str, or is empty: %s" % shorten(text)
            raise InvalidValue(reason, "SERVICE-20")
        super().__init__("%d: %s" % (code, text))
        self.code: int = code
        self.text: str = text
        self.data: BytesLike = data
        self.headers: HeadersLike | None = headers

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.text, self.data, self.headers)
