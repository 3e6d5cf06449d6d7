"""trio's transport: what only its scheduler can do to it."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from natsproto.adapters._trio_link import Link
from natsproto.adapters.trio import connect
from natsproto.connection.effects import Dial


class Port:
    """What a link reports to, counted."""

    def __init__(self):
        self.open = trio.Event()
        self.reports = []

    def opened(self):
        self.open.set()

    def received(self, data):
        self.reports.append(data)

    def carry_out(self):
        self.reports.append("written")

    def link_lost(self, error):
        self.reports.append(error)


@pytest.mark.rule("CONN-25")
def test_a_link_that_is_detached_when_its_tasks_are_about_to_run():
    """Both wake in one turn. If the link's tasks come second, their socket is closed by then."""

    async def detach_at(signal, link):
        await trio.lowlevel.wait_readable(signal)
        link.detach()

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for _ in range(40):
                port = Port()
                link = Link(port)
                near, far = socket.socketpair()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(link.run, Dial(*listener.getsockname(), False))
                    await port.open.wait()
                    peer, _ = listener.accept()
                    nursery.start_soon(detach_at, far, link)
                    link.write([bytes(1 << 24)])  # more than the system takes
                    await trio.testing.wait_all_tasks_blocked()
                    peer.recv(1 << 20)  # now it can write, and read
                    peer.send(b"PING\r\n")
                    near.send(b"now")
                for each in (peer, near, far):
                    each.close()
                assert port.reports in ([], [b"PING\r\n"])

    trio.run(main)


@pytest.mark.parametrize("size", [1, 500_000])
def test_a_block_that_is_cancelled_in_the_turn_in_which_it_publishes(server, size):
    """The cancellation is for what is in the block, not for the tasks that send."""

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


def test_a_block_whose_end_is_cut_short_leaves_no_task(server, monkeypatch):
    """Whatever the end of the block raises, the transport is dropped and the nursery empty."""

    async def main():
        with pytest.raises(KeyboardInterrupt):
            async with connect(server.url) as client:
                monkeypatch.setattr(client, "close", interrupted)

    async def interrupted():
        raise KeyboardInterrupt

    trio.run(main)
