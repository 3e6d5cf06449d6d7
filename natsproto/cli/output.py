"""Output: text for people or, with --json, JSON for programs.

Results go to stdout, and everything else to stderr, so that a pipe sees results only (D-CLI-2).
Each line is flushed, because the reader may be a program that waits for it.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

from natsproto.errors import HeaderError

if TYPE_CHECKING:
    from natsproto.wire.frames import Msg
    from natsproto.wire.headers import Headers


class Output:
    """The output of one command."""

    def __init__(self, as_json: bool = False) -> None:
        #: Whether --json was given.
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """Print a line of text; bytes that are not UTF-8 are printed unchanged."""
        self.raw(text.encode("utf-8", "surrogateescape") + b"\n")

    def raw(self, data: bytes) -> None:
        """Print bytes unchanged."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def json(self, value: object) -> None:
        """Print a value as a line of JSON."""
        self.line(json.dumps(value, ensure_ascii=False, default=str))

    def result(self, value: object, text: str) -> None:
        """Print a result: the value with --json, and otherwise the text."""
        if self.as_json:
            self.json(value)
        elif text:
            self.line(text)

    def note(self, text: str) -> None:
        """Print a line on stderr: progress, or an event of the connection."""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def error(self, error: BaseException, code: int) -> None:
        """Print an error on stderr."""
        if self.as_json:
            fields = {"error": str(error), "kind": type(error).__name__, "exit_code": code}
            self.note(json.dumps(fields))
        else:
            self.note(f"natsproto: {error}")

    def message(self, msg: Msg, number: int, raw: bool) -> None:
        """Print a message; with `raw` only its payload and the end of a line."""
        if self.as_json:
            self.json(message_fields(msg))
        elif raw:
            self.raw(msg.data + b"\n")
        else:
            reply = f", reply to {msg.reply}" if msg.raw_reply else ""
            self.line(f"[{number}] {msg.subject}: {len(msg.data)} bytes{reply}")
            for name, value in headers_of(msg):
                self.line(f"{name}: {value}")
            self.raw(msg.data + b"\n\n")


def message_fields(msg: Msg) -> dict[str, Any]:
    """Return a message as an object of JSON."""
    fields: dict[str, Any] = {"subject": msg.subject}
    if msg.raw_reply:
        fields["reply"] = msg.reply
    pairs = headers_of(msg)
    if pairs:
        fields["headers"] = group(pairs)
    if msg.status:
        fields["status"] = msg.status
    fields.update(data_fields(msg.data))
    return fields


def group(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the values of each header, in their order."""
    headers: dict[str, list[str]] = {}
    for name, value in pairs:
        headers.setdefault(name, []).append(value)
    return headers


def data_fields(data: bytes, name: str = "data") -> dict[str, str]:
    """Return a payload as text, or in base64 under another name if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def headers_of(msg: Any) -> list[tuple[str, str]]:
    """Return the headers of a message; an empty list if they cannot be read."""
    try:
        headers: Headers | None = msg.headers
        return list(headers.items()) if headers is not None else []
    except HeaderError:
        return []
