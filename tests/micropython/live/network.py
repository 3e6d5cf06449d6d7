"""How the programs here connect, and are told to go on: by the host, or by sockets and stdin."""

import sys

from natsproto.adapters.micropython import connect

try:
    import js
    from host import RNG, WebSocketTransport

    # The port for WebAssembly has no sockets; host.py is that of the explorer.
    OPTIONS = {"transport": WebSocketTransport, "rng": RNG, "ignore_discovered": True}
    host_line = js.host_line
except ImportError:
    OPTIONS = {}

    async def host_line():
        return sys.stdin.readline().strip()


def dial(url, **options):
    options.update(OPTIONS)
    return connect(url, **options)
