"""A dialogue with a real server, frame by frame: the bytes sent, and what the parser reads back.

There is no client here, only a socket, the encoder and the parser: this is the protocol itself.
Starts a nats-server of its own; needs the extra `server`.
"""

from __future__ import annotations

import socket
import sys

from natsproto import Err, Headers, Info, InvalidSubject, Msg, Ok, Parser, Ping, Pong, encode
from natsproto.testing import Server

BOLD, CYAN, GREEN = "\x1b[1m", "\x1b[36m", "\x1b[32m"

HELLO = {
    "name": "wire_dialogue",
    "lang": "python",
    "version": "0",
    "verbose": True,  # every operation is answered with +OK
    "headers": True,
    "no_responders": True,
    "protocol": 1,
}
NOTE = Headers({"Trace-Id": "7f", "Tag": ["red", "blue"]})

DIALOGUE = [  # what happens, what we send, what must come back
    ("The server introduces itself", [], [Info]),
    ("We introduce ourselves", [encode.connect(HELLO)], [Ok]),
    ("PING is answered, and more INFO comes", [encode.ping()], [Pong, Info]),
    ("Subscribe to all greetings", [encode.sub("greet.*", 1)], [Ok]),
    ("Publish; we are a subscriber too", [encode.pub("greet.ada", b"hello")], [Ok, Msg]),
    ("With headers", [encode.pub("greet.ada", b"hello", headers=NOTE)], [Ok, Msg]),
    (
        "A request without a responder: status 503, at once",
        [encode.sub("_INBOX.1", 2), encode.pub("time.now", reply="_INBOX.1")],
        [Ok, Ok, Msg],
    ),
    ("Unsubscribe", [encode.unsub(1)], [Ok]),
    ("Publish again, without a subscriber", [encode.pub("greet.ada", b"hello?")], [Ok]),
    ("Force a bad subject on the server", [b"SUB greet..ada 3\r\n"], [Err]),
    ("Nothing is left: the next answer is this PONG", [encode.ping()], [Pong]),
]


def main() -> None:
    with Server() as server, socket.create_connection((server.host, server.port), 5.0) as sock:
        parser = Parser()
        frames: list[object] = []
        for title, operations, answers in DIALOGUE:
            show(BOLD, f"\n{title}")
            for operation in operations:
                show(CYAN, f"  > {operation!r}")
                sock.sendall(operation)
            for kind in answers:
                frame = read_frame(sock, parser, frames)
                show(GREEN, f"  < {describe(frame)}")
                if not isinstance(frame, kind):
                    sys.exit(f"expected {kind.__name__}")
        show(BOLD, "\nOur own encoder refuses that bad subject before a byte is sent")
        try:
            encode.sub("greet..ada", 3)
        except InvalidSubject as error:
            show(GREEN, f"  {type(error).__name__}: {error}")
        else:
            sys.exit("it did not")


def read_frame(sock: socket.socket, parser: Parser, frames: list[object]) -> object:
    """The next frame that is not the server's own PING; `frames` keeps those of the same read."""
    while True:
        while not frames:
            data = sock.recv(65536)
            if not data:
                sys.exit("the server hung up")
            frames += parser.feed(data)
        frame = frames.pop(0)
        if not isinstance(frame, Ping):
            return frame
        sock.sendall(encode.pong())


def describe(frame: object) -> str:
    if isinstance(frame, Info):
        return (
            f"Info: {frame.server_name}, version {frame.version}, max_payload {frame.max_payload}"
        )
    if isinstance(frame, Msg):
        parts = [f"Msg for {frame.sid}: {frame.subject} {frame.data!r}"]
        if frame.status:
            parts.append(f"status {frame.status} {frame.description}".rstrip())
        if frame.headers is not None:
            parts.append(f"headers {frame.headers.items()}")
        return ", ".join(parts)
    return repr(frame)


def show(style: str, text: str) -> None:
    print(f"{style}{text}\x1b[0m" if sys.stdout.isatty() else text)


if __name__ == "__main__":
    main()
