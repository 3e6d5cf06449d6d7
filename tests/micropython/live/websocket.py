"""A transport for the MicroPython adapter: the WebSocket of the host, as in Node and browsers.

Bytes handed over as values would cross the border one by one, so they go through the file system
of MicroPython, which is in memory. ../live.mjs has the host's side.
"""

import asyncio
import binascii

import js

from natsproto.adapters.driver import SystemRng


class WebSocketTransport:
    def __init__(self):
        self._socket = None
        self._changed = asyncio.Event()
        self._chunks = []
        self._closed = False

    async def open(self, host, port):
        url = "ws://%s:%d" % (host, port)
        self._socket = js.host_open(url, self._changed.set, self._receive, self._end)
        await self._changed.wait()
        if self._closed:
            raise OSError("no WebSocket at %s" % url)

    def start_tls(self, context, hostname):
        raise ValueError("TLS is done by the host: use a wss URL")

    async def read(self, size):
        while not self._chunks and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        return self._chunks.pop(0) if self._chunks else b""

    async def write(self, data):
        path = "/out%d" % self._socket
        with open(path, "wb") as file:
            file.write(data)
        js.host_send(self._socket, path)

    def close(self):
        if self._socket is not None:
            js.host_close(self._socket)

    def _receive(self, path):
        with open(path, "rb") as file:
            self._chunks.append(file.read())
        self._changed.set()

    def _end(self):
        self._closed = True
        self._changed.set()


def random_bytes(size):
    return binascii.unhexlify(js.host_random(size))


# This port of MicroPython has no os.urandom.
RNG = SystemRng(random_bytes)
