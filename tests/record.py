"""Record dialogues between this client and a real server: `python -m tests.record`.

A proxy between the two records each frame with its time, in the format of tests/vectors. Existing
recordings are kept, because the rules and the tests refer to them. To replace one, delete its file
first.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

from jetstream import JetStream, KeyValue, ObjectStore
from jetstream.errors import KeyDeleted, KeyExists, KeyNotFound, WrongLastRevision
from jetstream.tools.cli.trace.frames import frame_size
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from tests.core import ROOT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

IMPORTED = (KeyValue, ObjectStore)  # now, not during a recording
VECTORS = ROOT / "tests" / "vectors"


class Recorder:
    """The frames of a dialogue, and remarks between them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._start = time.monotonic()
        self._rest = {">": b"", "<": b""}

    def remark(self, text: str) -> None:
        self._add("", "#", text.encode())

    def data(self, direction: str, data: bytes) -> None:
        """Add the frames that these bytes complete."""
        rest = self._rest[direction] + data
        while True:
            size = frame_size(rest)
            if not size or len(rest) < size:
                break
            self._add("A", direction, rest[:size])
            rest = rest[size:]
        self._rest[direction] = rest

    def _add(self, client: str, direction: str, data: bytes) -> None:
        self.entries.append(
            {
                "t_ms": round((time.monotonic() - self._start) * 1000, 1),
                "conn": client,
                "dir": direction,
                "latin1": data.decode("latin-1"),
                "b64": base64.b64encode(data).decode(),
            }
        )


async def _copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    record: Callable[[str, bytes], None],
    direction: str,
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            record(direction, data)
            writer.write(data)
            await writer.drain()
    writer.close()


async def record(
    server: Server, script: Callable[[JetStream, Recorder], Awaitable[None]]
) -> tuple[str, list[dict[str, Any]]]:
    """Run a script through the proxy; return the version of the server and the dialogue."""
    recorder = Recorder()
    host, port = server.url.rpartition("/")[2].split(":")
    connections: list[asyncio.Task[None]] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection(host, int(port))
        await asyncio.gather(
            _copy(reader, down, recorder.data, ">"), _copy(up, writer, recorder.data, "<")
        )

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.create_task(carry(reader, writer)))

    listening = await asyncio.start_server(accepted, "127.0.0.1", 0)
    proxy = listening.sockets[0].getsockname()[1]
    async with connect(f"nats://127.0.0.1:{proxy}", ignore_discovered=True) as client:
        await script(JetStream(client), recorder)
        await client.flush()
        entries = list(recorder.entries)
        version = client.info.version if client.info else ""
    listening.close()
    await asyncio.gather(*connections)
    return version, entries


async def values(js: JetStream, recorder: Recorder) -> None:
    recorder.remark("create the bucket")
    bucket = await js.create_key_value(bucket="cfg", history=3)
    recorder.remark("put a value, then read it")
    revision = await bucket.put("color", b"red")
    await bucket.get("color")
    recorder.remark("read a key that does not exist")
    with contextlib.suppress(KeyNotFound):
        await bucket.get("shape")
    recorder.remark("update with the right revision, then with a wrong one")
    await bucket.update("color", b"blue", last=revision)
    with contextlib.suppress(WrongLastRevision):
        await bucket.update("color", b"green", last=revision)
    recorder.remark("create a key that exists")
    with contextlib.suppress(KeyExists):
        await bucket.create("color", b"black")
    recorder.remark("delete the key, read it, and create it again")
    await bucket.delete("color")
    with contextlib.suppress(KeyDeleted):
        await bucket.get("color")
    await bucket.create("color", b"white")
    recorder.remark("purge the key")
    await bucket.purge("color")


async def watch(js: JetStream, recorder: Recorder) -> None:
    bucket = await js.create_key_value(bucket="watched")
    await bucket.put("a", b"1")
    await bucket.put("b", b"2")
    recorder.remark("watch the bucket")
    async with await bucket.watch_all() as watcher:
        async for _ in watcher.initial():
            pass
        recorder.remark("the initial values are complete; now a key changes")
        await bucket.put("a", b"3")
        await watcher.next(timeout=5)
        recorder.remark("stop the watch")


async def objects(js: JetStream, recorder: Recorder) -> None:
    recorder.remark("create the bucket")
    store = await js.create_object_store(bucket="files")
    recorder.remark("put an object of 150 bytes, in chunks of 64")
    await store.put("note.txt", b"0123456789" * 15, chunk_size=64)
    recorder.remark("read it")
    await store.get_bytes("note.txt")
    recorder.remark("delete it")
    await store.delete("note.txt")


SCRIPTS = {
    "120-kv-values": ("a bucket: put, get, update, create, delete, purge", values),
    "121-kv-watch": ("a watch: initial values, then a change", watch),
    "122-objects": ("an object: put in chunks, get, delete", objects),
}


def main() -> None:
    for name, (title, script) in SCRIPTS.items():
        path = VECTORS / f"{name}.json"
        if path.exists():
            continue
        with Server(jetstream=True) as server:
            version, entries = asyncio.run(record(server, script))
        text = {
            "name": name,
            "title": title,
            "server": f"nats-server {version}",
            "notes": [],
            "frames": entries,
        }
        path.write_text(json.dumps(text, indent=1), encoding="utf-8")
        print(path, len(entries))


if __name__ == "__main__":
    main()
