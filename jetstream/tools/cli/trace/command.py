"""The commands trace and explain."""

from __future__ import annotations

import asyncio
import codecs
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natsproto.cli.options import tls_context
from natsproto.cli.run import interruptible
from natsproto.errors import InvalidValue
from natsproto.options import DEFAULT_SERVER
from natsproto.urls import ServerUrl

from .dialogue import RECEIVED, SENT, Dialogue
from .proxy import Proxy, Settings
from .transcript import Transcript, read_steps
from .websocket import Unwrapper

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session

    from .dialogue import Step

_OF_SERVER = (b"INFO", b"MSG", b"HMSG", b"+OK", b"-ERR")


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.command(
        "trace",
        trace,
        "Print the dialogue between any client and a server, explained.",
        details="A proxy: connect the client to the listener. Secrets are masked.",
        live=True,
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:4223", metavar="ADDR", help="host:port (127.0.0.1:4223)"
    )
    parser.add_argument("--to", metavar="SERVER", help="the server; by default that of --server")
    parser.add_argument("--listen-cert", metavar="FILE", help="offer TLS to clients")
    parser.add_argument("--listen-key", metavar="FILE", help="private key of --listen-cert")
    parser.add_argument("--save", metavar="FILE", help="write a transcript, as in tests/vectors")
    parser.add_argument("--once", action="store_true", help="end with the first connection")
    parser.add_argument("--hide", nargs="+", default=[], metavar="KIND", help="such as ping pong")

    parser = commands.command("explain", explain, "Explain bytes, a file of them, or a transcript.")
    parser.add_argument("what", help=r"bytes, with escapes such as \r\n; or a file; - is stdin")
    sides = ["auto", "client", "server"]
    parser.add_argument("--sender", choices=sides, default="auto", help="who sent the bytes")


def show(session: Session, step: Step) -> None:
    """Print a step."""
    if session.out.as_json:
        session.out.json(step.json())
    else:
        session.out.line("\n".join(step.lines()))


class Tracer:
    """The dialogues of a proxy, printed and written down."""

    def __init__(self, session: Session, websocket: bool) -> None:
        self._session = session
        self._websocket = websocket
        self._unwrappers: dict[tuple[str, str], Unwrapper] = {}
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._dialogues: dict[str, Dialogue] = {}
        self._transcript = Transcript("trace", "recorded by natsproto trace")
        self.first_ended: asyncio.Event = asyncio.Event()
        self.error: BaseException | None = None

    def report(self, connection: str, direction: str, data: bytes) -> None:
        """Print bytes of a connection."""
        if self._websocket:  # D-PROXY-5
            data = self._unwrappers.setdefault((connection, direction), Unwrapper()).feed(data)
        dialogue = self._dialogues.setdefault(connection, Dialogue(connection))
        self._steps(dialogue.feed(direction, data, self._now()))

    def ended(self, connection: str, why: str) -> None:
        """Print the end of a connection."""
        dialogue = self._dialogues.pop(connection, None)
        if dialogue is not None:
            self._steps(dialogue.end(self._now()))
        for direction in (SENT, RECEIVED):
            self._unwrappers.pop((connection, direction), None)
        self._transcript.close(self._now(), connection)
        if not self._session.out.as_json:
            self._session.out.note(f"connection {connection}: {why}")
        self.first_ended.set()

    def save(self, path: Path) -> None:
        """Write the transcript."""
        path.write_text(self._transcript.text(), encoding="utf-8")

    def _now(self) -> float:
        return self._loop.time() - self._start

    def _steps(self, steps: list[Step]) -> None:
        for step in steps:
            if self._session.args.save:  # otherwise a long trace would only fill the memory
                self._transcript.add(step)
            if step.kind not in self._session.args.hide and self.error is None:
                try:
                    show(self._session, step)
                except BrokenPipeError as error:  # raised in a callback of the loop: keep it
                    self.error = error
                    self.first_ended.set()


async def trace(session: Session) -> None:
    """Run trace."""
    args = session.args
    settings = _settings(args)
    tracer = Tracer(session, settings.server.is_websocket)
    proxy = Proxy(settings, tracer.report, tracer.ended)
    if args.save:
        tracer.save(Path(args.save))  # now, not after an hour, because the path may be wrong
    await proxy.start()
    server = proxy.settings.server
    session.out.note(f"listening on {args.listen.rpartition(':')[0] or '127.0.0.1'}:{proxy.port}")
    session.out.note(f"forwarding to {server}")
    try:
        await tracer.first_ended.wait()
        while not args.once and tracer.error is None:
            tracer.first_ended.clear()
            await tracer.first_ended.wait()
    finally:
        await proxy.stop()
        if args.save:
            tracer.save(Path(args.save))
    if tracer.error is not None:
        raise tracer.error


def _settings(args: Any) -> Settings:
    host, _, port = args.listen.rpartition(":")
    if not port.isdigit():
        raise InvalidValue(f"--listen is not host:port: {args.listen[:80]!r}")
    server = ServerUrl.parse((args.to or args.server or DEFAULT_SERVER).split(",")[0])
    if bool(args.listen_cert) != bool(args.listen_key):
        raise InvalidValue("--listen-cert and --listen-key belong together: one is missing")
    listen_tls = None
    if args.listen_cert:
        listen_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        listen_tls.load_cert_chain(args.listen_cert, args.listen_key)
    return Settings(
        host.strip("[]") or "127.0.0.1",
        int(port),
        server,
        upstream_tls=tls_context(args.tlsca, args.tlscert, args.tlskey),
        requires_tls=args.tls or args.tlsfirst or server.scheme == "tls",
        tls_first=args.tlsfirst,
        listen_tls=listen_tls,
    )


async def explain(session: Session) -> None:
    """Run explain."""
    args = session.args
    path = Path(args.what) if len(args.what) < 4096 and "\0" not in args.what else None
    if args.what == "-":
        with interruptible():
            data = sys.stdin.buffer.read()
    elif path is not None and path.is_file():
        data = path.read_bytes()
        if data.lstrip()[:1] == b"{":
            for step in read_steps(path):
                show(session, step)
            return
    else:
        data = unescaped(args.what)
    sender = sender_of(data) if args.sender == "auto" else args.sender
    direction = SENT if sender == "client" else RECEIVED
    dialogue = Dialogue()
    for step in dialogue.feed(direction, data, 0.0) + dialogue.end(0.0):
        show(session, step)


def unescaped(text: str) -> bytes:
    r"""Return the bytes of an argument: \r\n and \x00 are escapes; the last line is completed."""
    raw = text.encode("utf-8", "surrogateescape")
    try:
        data: Any = codecs.escape_decode(raw)[0]
    except ValueError as error:
        raise InvalidValue(f"escape is not valid: {error}") from None
    made = bytes(data)
    return made if made.endswith(b"\n") else made + b"\r\n"


def sender_of(data: bytes) -> str:
    """Return who sends such bytes; PING and PONG are attributed to a client."""
    words = data.split(maxsplit=1)
    return "server" if words and words[0].upper() in _OF_SERVER else "client"
