"""Publish and subscribe without a loop. Argument: the URL of a server, if not the usual one."""

from __future__ import annotations

import sys

from natsproto.adapters.blocking import connect


def main(url: str) -> None:
    with connect(url) as client, client.subscribe("greet.*") as sub:
        client.publish("greet.ada", b"hello")
        msg = sub.next(timeout=2.0)
        print(f"{msg.subject}: {msg.data.decode()}")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["nats://127.0.0.1:4222"])
