"""What every adapter does before its first byte: options, files, randomness, TLS contexts."""

from __future__ import annotations

import random
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natsproto.connection import Connection
from natsproto.errors import InvalidValue
from natsproto.options import Options

if TYPE_CHECKING:
    from natsproto.options import ServersLike

RANDOM = random.SystemRandom()
READ_SIZE = 64 * 1024


def make_connection(servers: ServersLike, options: dict[str, Any]) -> Connection:
    """A new connection with these options; `creds` is the path of a file here."""
    creds: object = options.get("creds")
    if isinstance(creds, (str, Path)) and str(creds):
        path = Path(creds)
        if not path.is_file():
            raise InvalidValue(f"creds: there is no file {str(path)!r}")
        # Read anew at every attempt: credentials are renewed by replacing the file.
        options = {**options, "creds": path.read_text}
    return Connection(Options(servers=servers, **options), rng=RANDOM)


def tls_context(options: Options) -> ssl.SSLContext:
    """The user's context, or the system's defaults where none was given but TLS is needed."""
    if options.tls is None or options.tls is True:
        return ssl.create_default_context()
    assert isinstance(options.tls, ssl.SSLContext)
    return options.tls
