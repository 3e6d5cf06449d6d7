"""Under load no message is lost or duplicated, and no queue with a reader overflows."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from natsproto import Parser
from natsproto.wire.frames import Ping, Pub
from tests.adapters.runtimes import RUNTIMES, Runtime

TASKS = 100
EACH = 25
PADDING = bytes(16 * 1024)
BURST = 300_000


class SlowServer:
    """Reads slowly, and keeps the messages that clients publish."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        # Set before listening: a connection inherits the buffer sizes of its listener.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.url = "nats://127.0.0.1:%d" % self._listener.getsockname()[1]
        self.published: list[Pub] = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> SlowServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        parser = Parser(peer="client")
        with client:
            client.sendall(b'INFO {"max_payload":1048576,"headers":true}\r\n')
            while data := client.recv(64 * 1024):
                for frame in parser.feed(data):
                    if isinstance(frame, Ping):
                        client.sendall(b"PONG\r\n")
                    elif isinstance(frame, Pub):
                        self.published.append(frame)
                time.sleep(0.0005)


@pytest.mark.rule("RECON-7")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_hundred_tasks_publish_to_a_slow_server(runtime):
    runtime = Runtime(runtime)
    with SlowServer() as server:

        async def main():
            async with runtime.connect(server.url) as client:

                async def publish(task):
                    for number in range(EACH):
                        await client.publish(f"load.{task}", b"%d:" % number + PADDING)

                tasks = [runtime.start(lambda task=task: publish(task)) for task in range(TASKS)]
                for task in tasks:
                    await task.result()
                await client.flush()

        runtime.run(main)
    got = [(frame.subject, int(frame.data.partition(b":")[0])) for frame in server.published]
    assert len(got) == TASKS * EACH
    for task in range(TASKS):
        assert [number for subject, number in got if subject == f"load.{task}"] == list(range(EACH))
    assert {len(frame.data.partition(b":")[2]) for frame in server.published} == {len(PADDING)}


@pytest.mark.rule("SUB-5")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_iterator_keeps_up_with_a_fast_sender(runtime, server):
    """The queue holds 65,536 messages, so the adapter must not read far ahead of a busy reader."""
    runtime = Runtime(runtime)

    def send(url):
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as sock:
            sock.sendall(b'CONNECT {"verbose":false}\r\n' + b"PUB burst 1\r\nx\r\n" * BURST)
            sock.sendall(b"PUB burst 0\r\n\r\nPING\r\n")
            while b"PONG" not in sock.recv(64 * 1024):
                pass

    async def main():
        async with runtime.connect(server.url) as client, await client.subscribe("burst") as sub:
            await client.flush()
            sender = threading.Thread(target=send, args=[server.url])
            sender.start()
            count = 0
            async for msg in sub:
                if not msg.data or sub.dropped:
                    break
                count += 1
            sender.join()
            assert (count, sub.dropped) == (BURST, 0)

    runtime.run(main)
