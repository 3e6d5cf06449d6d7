"""JetStream without an event loop, an adapter, a thread or a coroutine: one socket and `select`.

    python examples/by_hand.py [nats://127.0.0.1:4222]

docs/embedding.md explains it, and lists the methods of the machines that it may rely on.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
import time
from typing import Any

from jetstream.pull.by_hand import start_consume, take
from natsproto.connection import Connection, Dial, Hangup, StartTls
from natsproto.options import Options

COUNT = 250
PATIENCE = 5.0


class Hand:
    """Drives a connection with one socket. `turn` waits until something happens and handles it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sock: socket.socket | None = None
        connection.connect(time.monotonic())

    def turn(self, longest: float = 1.0) -> None:
        """Wait for data or a deadline, `longest` seconds at most, and act on it."""
        connection = self.connection
        self.read_outputs()  # after the commands since the last turn
        if connection.closed:
            return  # for good: there is no deadline and no socket to wait for
        deadline = connection.next_deadline()
        if deadline is not None:
            longest = min(longest, max(0.0, deadline - time.monotonic()))
        if self.sock is None:
            time.sleep(longest)  # until the next attempt to connect
        elif select.select([self.sock], [], [], longest)[0]:
            self.receive(self.sock)
        connection.handle_timer(time.monotonic())
        self.read_outputs()  # after the inputs

    def read_outputs(self) -> None:
        while self.carry_out() or self.send():
            pass  # what was carried out is another input
        self.connection.take_ready()  # nothing waits for these: the program looks at its machines

    def carry_out(self) -> bool:
        """Carry out the effects; return whether there were any."""
        effects = self.connection.take_effects()
        for effect in effects:
            if isinstance(effect, Dial):
                self.dial(effect)
            elif isinstance(effect, Hangup):
                self.hang_up()
            elif isinstance(effect, StartTls):
                self.lose(OSError("this program has no TLS"))
        return bool(effects)

    def dial(self, effect: Dial) -> None:
        try:
            self.sock = socket.create_connection((effect.host, effect.port), PATIENCE)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            self.lose(error)
        else:
            self.connection.transport_opened(time.monotonic())

    def send(self) -> bool:
        """Send what there is; return whether the connection has to be looked at again."""
        if self.sock is None:
            return False
        try:
            for piece in self.connection.data_to_send():
                self.sock.sendall(piece)  # for PATIENCE at most: that is the socket's timeout
        except OSError as error:
            self.lose(error)
            return True
        return False

    def receive(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(65536)
        except OSError as error:
            self.lose(error)
            return
        if data:
            self.connection.receive_data(data, time.monotonic())
        else:
            self.lose(None)

    def lose(self, error: OSError | None) -> None:
        self.hang_up()
        self.connection.transport_closed(time.monotonic(), error)

    def hang_up(self) -> None:
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def request(self, subject: str, data: bytes) -> dict[str, Any]:
        """Send a request to JetStream and turn until its response is there."""
        deadline = time.monotonic() + PATIENCE
        request = self.connection.start_request(subject, data, deadline=deadline)
        while not request.done:
            self.turn()
        if request.error is not None:
            raise request.error
        assert request.reply is not None
        response: dict[str, Any] = json.loads(request.reply.data)
        if "error" in response:
            raise RuntimeError(response["error"]["description"])
        return response


def main(url: str) -> None:
    hand = Hand(Connection(Options(servers=url, name="by hand"), rng=random.SystemRandom()))
    connection = hand.connection
    stream = {"name": "BY_HAND", "subjects": ["by.hand.*"], "storage": "memory"}
    hand.request("$JS.API.STREAM.CREATE.BY_HAND", json.dumps(stream).encode())
    config = {"durable_name": "worker", "ack_policy": "explicit"}
    worker = {"stream_name": "BY_HAND", "config": config}
    hand.request("$JS.API.CONSUMER.CREATE.BY_HAND.worker", json.dumps(worker).encode())

    pending = [
        connection.start_request(
            "by.hand.%d" % number, b"%d" % number, deadline=time.monotonic() + PATIENCE
        )
        for number in range(COUNT)
    ]
    while not all(each.done for each in pending):
        hand.turn()
    print("stored", sum(each.error is None for each in pending))

    machine = start_consume(
        connection, "BY_HAND", "worker", time.monotonic(), max_messages=100, stop_after=COUNT
    )
    taken: list[bytes] = []
    while not machine.ended:
        hand.turn()
        while machine.pending():
            msg = take(connection, machine, time.monotonic())
            taken.append(msg.data)
            connection.respond(msg.raw_reply, b"+ACK")
    if machine.error is not None:
        raise machine.error
    print("consumed and acknowledged", len(taken))

    hand.request("$JS.API.STREAM.DELETE.BY_HAND", b"")
    closing = connection.start_close(time.monotonic() + PATIENCE)  # also sends what is left
    while not closing.done:
        hand.turn()
    if closing.error is not None:
        raise closing.error


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "nats://127.0.0.1:4222")
