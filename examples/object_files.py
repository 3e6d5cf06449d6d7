"""Files in a bucket, put and got piece by piece. Argument: the URL of a server."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect


def main(url: str) -> None:
    with connect(url) as client, tempfile.TemporaryDirectory() as directory:
        js = JetStream(client)
        store = js.create_or_update_object_store(bucket="example-files")
        for path in sorted(Path(__file__).parent.glob("*_hello.py")):
            with path.open("rb") as file:
                info = store.put(path.name, file, metadata={"folder": path.parent.name})
            print(f"{info.name}: {info.size} bytes, {info.digest}")
        for info in store.list():
            with store.get(info.name) as reader, (Path(directory) / info.name).open("wb") as file:
                shutil.copyfileobj(reader, file)  # raises unless it is what was put
        print(f"{len(list(Path(directory).iterdir()))} files came back")
        js.delete_object_store("example-files")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["nats://127.0.0.1:4222"])
