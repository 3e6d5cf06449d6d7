"""Connections of Spark's processes: one for each set of options, kept for the next task.

Workers are reused from task to task, and connecting costs more than a small read. A worker runs one
task at a time, so one connection of the blocking adapter is enough. The connections of a few sets
of options are kept, and the one that was not used for the longest time is closed for another: with
tokens that change, for example, there would be more and more of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.errors import InvalidValue, PermissionDenied
from natsproto.events import ServerError
from natsproto.wire.text import shorten

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from natsproto.blocking import Client
    from natsproto.connection import Connection
    from natsproto.options import OptionsDict

    from .options import Settings

_CONNECTION = [
    "servers",
    "credsFile",
    "nkeySeedFile",
    "user",
    "password",
    "token",
    "tls",
    "tlsFirst",
    "tlsCa",
    "tlsCert",
    "tlsKey",
    "inboxPrefix",
    "clientName",
]
_MOST = 4  # connections of a process
_clients: dict[tuple[int, str], Client] = {}


def jetstream(settings: Settings) -> JetStream:
    """Return JetStream for these options, on the connection of this process."""
    return _jetstream(settings, client(settings), settings.seconds("requestTimeout"))


@contextlib.contextmanager
def new_jetstream(settings: Settings, timeout: float) -> Generator[JetStream]:
    """Return JetStream for these options, on a new connection, which is closed after the block."""
    options = _options(settings)
    options["connect_timeout"] = timeout
    with connect(settings.list("servers"), **options) as client:
        yield _jetstream(settings, client, timeout)


def _jetstream(settings: Settings, client: Client, timeout: float) -> JetStream:
    if settings.given("domain"):
        return JetStream(client, domain=settings.text("domain"), timeout=timeout)
    prefix = settings.text("apiPrefix") or "$JS.API"
    return JetStream(client, prefix=prefix, timeout=timeout)


def client(settings: Settings) -> Client:
    """Return the connection of this process for these options; connect if there is none."""
    # A forked child connects itself: it must neither use nor close its parent's connection.
    key = (os.getpid(), _digest(settings))
    kept = _clients.pop(key, None)
    if kept is None or kept.state == "CLOSED":
        kept = connect(settings.list("servers"), **_options(settings))
    _clients[key] = kept  # the last, because it was used last
    while len(_clients) > _MOST:
        _close(next(iter(_clients)))
    return kept


def forget(settings: Settings) -> None:
    """Close this process's connection for these options, if there is one."""
    _close((os.getpid(), _digest(settings)))


def _close(key: tuple[int, str]) -> None:
    kept = _clients.pop(key, None)
    if kept is not None and key[0] == os.getpid():
        with kept:
            pass


def denied_publishes(connection: Connection) -> Iterator[PermissionDenied]:
    """Yield the permission errors that the server has sent since the last call."""
    event = connection.events.pop()
    while event is not None:
        error = event.error if isinstance(event, ServerError) else None
        if isinstance(error, PermissionDenied):
            yield error
        event = connection.events.pop()


def find_file(settings: Settings, name: str) -> str:
    """Return the path in this option, or that of the file that Spark distributed by this name."""
    from pyspark import SparkFiles

    given = settings.text(name)
    if Path(given).is_file():
        return given
    try:
        shipped = SparkFiles.get(given)
    except Exception as error:  # outside of Spark it has no directory: AssertionError and others
        raise _no_file(name, given) from error
    if not Path(shipped).is_file():
        raise _no_file(name, given)
    return shipped


def _no_file(name: str, given: str) -> InvalidValue:
    return InvalidValue(
        "option %s: file %s does not exist here, nor among the files of SparkContext.addFile"
        % (name, shorten(given))
    )


def _digest(settings: Settings) -> str:
    # A digest, because the key of a dict appears in dumps, and the options contain passwords.
    values = [settings.get(name) for name in _CONNECTION]
    return hashlib.sha256(pickle.dumps(values)).hexdigest()


def _options(settings: Settings) -> OptionsDict:
    options: dict[str, Any] = {"name": settings.text("clientName")}
    options["inbox_prefix"] = settings.text("inboxPrefix")
    options["connect_timeout"] = settings.seconds("requestTimeout")
    for name in ("user", "password", "token"):
        if settings.given(name):
            options[name] = settings.text(name)
    if settings.given("credsFile"):
        options["creds"] = find_file(settings, "credsFile")
    if settings.given("nkeySeedFile"):
        path = Path(find_file(settings, "nkeySeedFile"))
        options["nkey_seed"] = lambda: path.read_text(encoding="ascii").strip()
    options["tls_first"] = settings.flag("tlsFirst")
    options["tls"] = _tls(settings)
    return options  # type: ignore[return-value]


def _tls(settings: Settings) -> ssl.SSLContext | None:
    wanted = settings.flag("tls") or settings.flag("tlsFirst")
    if not (wanted or settings.given("tlsCa") or settings.given("tlsCert")):
        return None
    authorities = find_file(settings, "tlsCa") if settings.given("tlsCa") else None
    try:
        context = ssl.create_default_context(cafile=authorities)
        if settings.given("tlsCert"):
            paths = [find_file(settings, name) for name in ("tlsCert", "tlsKey")]
            context.load_cert_chain(*paths)
    except ssl.SSLError as error:
        raise InvalidValue("options tlsCa, tlsCert, tlsKey: %s" % error) from None
    return context
