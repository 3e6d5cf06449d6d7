"""nats-py's API on natsproto and jetstream: existing programs run by changing an import.

    from natsproto.compat import nats

    nc = await nats.connect("nats://127.0.0.1:4222")

The package has the modules of nats-py by the same names: `natsproto.compat.nats.js.api` is
`nats.js.api`. Programs and libraries that import `nats` themselves run on it after

    import natsproto.compat.nats

    natsproto.compat.nats.install()

which must come before anything imports `nats`. docs/nats-py.md describes the differences.
"""

from __future__ import annotations

from typing import Any

from .aio.client import Client as NATS
from .install import install

__all__ = ["NATS", "connect", "install"]


async def connect(servers: str | list[str] = "nats://localhost:4222", **options: Any) -> NATS:
    """Connect and return the client; the options are those of `Client.connect`."""
    client = NATS()
    await client.connect(servers, **options)
    return client
