"""The transport of trio: effects of the order in which tasks run."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from natsproto.adapters._trio_stream import TransportStream
from natsproto.adapters.trio import connect
from natsproto.connection.effects import Dial


class Port:
    """Records the reports of a stream."""

    def __init__(self):
        self.open = trio.Event()
        self.reports = []

    def on_opened(self):
        self.open.set()

    def on_data(self, data):
        self.reports.append(data)

    def pump(self):
        self.reports.append("written")

    def transport_lost(self, error):
        self.reports.append(error)


@pytest.mark.rule("D-CONN-25")
def test_detaching_a_stream_whose_tasks_are_about_to_run():
    """Both wake in one turn. If the stream's tasks run second, their socket is closed by then."""

    async def detach_at(signal, stream):
        await trio.lowlevel.wait_readable(signal)
        stream.detach()

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for _ in range(40):
                port = Port()
                stream = TransportStream(port)
                near, far = socket.socketpair()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(stream.run, Dial(*listener.getsockname(), False))
                    await port.open.wait()
                    peer, _ = listener.accept()
                    nursery.start_soon(detach_at, far, stream)
                    stream.write([bytes(1 << 24)])  # more than the system takes
                    await trio.testing.wait_all_tasks_blocked()
                    peer.recv(1 << 20)  # now it can write, and read
                    peer.send(b"PING\r\n")
                    near.send(b"now")
                for each in (peer, near, far):
                    each.close()
                assert port.reports in ([], [b"PING\r\n"])

    trio.run(main)


@pytest.mark.parametrize("size", [1, 500_000])
def test_a_block_canceled_in_the_turn_in_which_it_publishes_still_sends(server, size):
    """The cancellation is meant for the block, not for the tasks that send."""

    async def main():
        async with connect(server.url) as watcher:
            sub = await watcher.subscribe("a")
            await watcher.flush()
            with trio.CancelScope() as scope:
                async with connect(server.url) as client:
                    await client.publish("a", bytes(size))
                    scope.cancel()
                    await trio.sleep_forever()
            assert scope.cancelled_caught
            assert len((await sub.next(timeout=5)).data) == size

    trio.run(main)


def test_a_block_whose_exit_is_interrupted_leaves_no_task(server, monkeypatch):
    """Whatever leaving the block raises, the transport is dropped and the nursery is empty."""

    async def main():
        with pytest.raises(KeyboardInterrupt):
            async with connect(server.url) as client:
                monkeypatch.setattr(client, "close", interrupted)

    async def interrupted():
        raise KeyboardInterrupt

    trio.run(main)
