"""Parsers alone: nanoseconds of CPU per message, natsproto against nats-py and nats-core.

Every parser gets the same bytes in the same reads of 64 KiB and passes each message to the program,
which adds up the lengths of the payloads; the sums must agree. Rounds are interleaved, and the best
round of each counts, because a shared machine can only add time.

    python bench/parser.py [--rounds N] [--markdown]

nats-core is omitted if it is not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import TYPE_CHECKING

from _tables import print_table, versions

import natsproto

if TYPE_CHECKING:
    from collections.abc import Callable

    Contender = Callable[[list[bytes]], int]

READ = 64 * 1024
# A stream of 1 MiB, again and again: like what has just been received, it is in the cache.
STREAM = 1024 * 1024


def use_natsproto(reads: list[bytes]) -> int:
    parser = natsproto.Parser()
    total = 0
    for data in reads:
        for msg in parser.feed(data):
            total += len(msg.data)
    return total


def nats_py() -> Contender:
    from nats.protocol.parser import Parser

    class Client:
        total = 0

        async def _process_msg(self, sid, subject, reply, data, headers):
            self.total += len(data)

    def use_nats_py(reads: list[bytes]) -> int:
        client = Client()
        parser = Parser(client)
        for data in reads:
            run(parser.parse(data))
        return client.total

    return use_nats_py


def nats_core() -> Contender:
    from nats.client.protocol.message import parse

    class Reader(asyncio.StreamReader):
        """A reader that always has data and never suspends, so that no event loop is measured."""

        def __init__(self, reads: list[bytes]) -> None:
            super().__init__(loop=loop)
            self._reads = iter(reads)

        async def _wait_for_data(self, func_name: str) -> None:
            data = next(self._reads, None)
            if data is None:
                self.feed_eof()
            else:
                self.feed_data(data)

    async def read_all(reader: Reader) -> int:
        total = 0
        while (msg := await parse(reader)) is not None:
            total += len(msg.payload)
        return total

    loop = asyncio.new_event_loop()
    loop.close()  # StreamReader only wants to know one
    return lambda reads: run(read_all(Reader(reads)))


def run(coroutine):
    """Run a coroutine that never suspends to completion."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it did suspend")


def contenders() -> dict[str, Contender]:
    found = {"natsproto": use_natsproto, "nats-py": nats_py()}
    try:
        found["nats-core"] = nats_core()
    except ImportError:
        print("nats-core, which needs Python 3.13, is left out")
    return found


# The messages, by number: what differs from one to the next in real life differs here.


def msg(size: int) -> Callable[[int], bytes]:
    return lambda i: b"MSG bench.orders.new 1 %d\r\n%s\r\n" % (size, bytes(size))


def mixed(i: int) -> bytes:
    size = 16 + i * 7919 % 1000
    return b"MSG bench.orders.new 1 %d\r\n%s\r\n" % (size, bytes(size))


def hmsg(i: int) -> bytes:
    block = b"NATS/1.0\r\nNats-Msg-Id: %08d\r\nTrace-Id: 4bf92f3577b34da6\r\n\r\n" % i
    size = len(block)
    return b"HMSG bench.orders.new 1 %d %d\r\n%s%s\r\n" % (size, size + 128, block, bytes(128))


def jetstream(i: int) -> bytes:
    reply = b"$JS.ACK.ORDERS.worker.1.%d.%d.1700000000%09d.%d" % (10**5 + i, i, i, 99999 - i)
    return b"MSG bench.orders.new 1 %s 128\r\n%s\r\n" % (reply, bytes(128))


ROWS = [  # label, message, how many times the stream is parsed in a run
    ("MSG 16 B", msg(16), 2),
    ("MSG 128 B", msg(128), 4),
    ("MSG 16 to 1015 B", mixed, 8),
    ("HMSG 128 B, two headers", hmsg, 4),
    ("JetStream, 128 B", jetstream, 4),
    ("MSG 16 KiB", msg(16 * 1024), 16),
]


def make_reads(message: Callable[[int], bytes]) -> tuple[list[bytes], int]:
    """Return reads of 64 KiB, and the number of messages in them."""
    messages: list[bytes] = []
    size = 0
    while size < STREAM:
        messages.append(message(len(messages)))
        size += len(messages[-1])
    stream = b"".join(messages)
    return [stream[i : i + READ] for i in range(0, size, READ)], len(messages)


def measure(rivals: dict[str, Contender], reads: list[bytes], rounds: int) -> dict[str, float]:
    """Return the best CPU time of each parser, in seconds."""
    assert len({parse(reads) for parse in rivals.values()}) == 1, "they disagree"
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, parse in rivals.items():
            start = time.process_time()
            parse(reads)
            best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=25)
    options.add_argument("--markdown", action="store_true")
    arguments = options.parse_args()

    rivals = contenders()
    peers = list(rivals)[1:]
    print(versions() + "\n")
    head = ["ns of CPU a message", *rivals, *[f"x {peer}" for peer in peers]]
    table = [head]
    for label, message, times in ROWS:
        reads, count = make_reads(message)
        best = measure(rivals, reads * times, arguments.rounds)
        figures = [f"{seconds / count / times * 1e9:.0f}" for seconds in best.values()]
        table.append([label, *figures, *[f"{best[p] / best['natsproto']:.2f}" for p in peers]])
    print_table(table, markdown=arguments.markdown)


if __name__ == "__main__":
    main()
