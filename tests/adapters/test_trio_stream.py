"""The transport of trio: effects of the order in which tasks run."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from natsproto.adapters._trio_stream import TransportStream
from natsproto.adapters.driver import READ_SIZE
from natsproto.adapters.trio import TrioPort, connect
from natsproto.connection.effects import Dial
from natsproto.errors import MessagesUnconfirmed, TimeoutExpired


class Port:
    """Records the reports of a stream."""

    read_size = READ_SIZE
    lone = waiting = 0

    def __init__(self):
        self.open = trio.Event()
        self.reports = []

    def on_opened(self):
        self.open.set()

    def on_data(self, data):
        self.reports.append(data)

    def uncork(self):
        """Look for work, as the writer may ask at any time."""

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
                    stream.write([bytes(1 << 24)])  # more than the system accepts
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


def test_a_publish_is_sent_without_another_turn_of_the_loop(server):
    """The first one after a read; those that follow in the same turn are joined by the writer."""
    sent = []

    async def main():
        async with connect(server.url) as client:
            port = client.session.port
            assert isinstance(port, TrioPort)
            await client.flush()
            await client.publish("a", b"1")
            sent.append(list(port.connection.data_to_send()))
            await client.publish("a", b"2")
            await client.publish("a", b"3")
            sent.append(b"".join(port.connection.data_to_send()).count(b"PUB"))
            port.connection.publish("a", b"4", "", None)
            await trio.testing.wait_all_tasks_blocked()
            sent.append(list(port.connection.data_to_send()))

    trio.run(main)
    assert sent == [[], 2, []]


@pytest.mark.rule("D-CONN-26")
def test_commands_take_effect_while_the_writer_waits_for_room(own_server):
    """A frozen server accepts nothing more: a timeout still holds, and so does a close."""

    async def main():
        async with connect(own_server.url, max_pending_out=1 << 24) as client:
            own_server.freeze()
            with trio.move_on_after(1):
                while True:
                    await client.publish("a", bytes(1 << 20))
            with pytest.raises(TimeoutExpired):
                await client.request("b", timeout=0.2)
            with pytest.raises(MessagesUnconfirmed):
                await client.close(timeout=0.2)
            assert client.state == "CLOSED"

    trio.run(main)
