"""Servers for checks that run on Pyodide: the test process starts and stops them.

Every server has a WebSocket, and `url` is that of the WebSocket. Some checks compose a URL from the
port for plain clients: `websocket_url` translates it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from test_process import ask


def call(name: str, *args: Any) -> Any:
    """Call a function of `control.Control` in the test process."""
    answer = json.loads(ask(json.dumps([name, *args])))
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["result"]


class Server:
    """As natsproto.testing.Server, as far as checks need it."""

    host = "127.0.0.1"

    def __init__(self, *, config: Any = "", jetstream: bool = False, **ignored: object) -> None:
        self._websocket = {"listen": f"{self.host}:{call('free_port')}", "no_tls": True}
        self._number: int = call("start", self._complete(config), jetstream)
        self.urls: dict[str, str] = call("get", self._number, "urls")
        PORTS[self.urls["nats"].rpartition(":")[2]] = self.urls["websocket"].rpartition(":")[2]
        self.version = tuple(call("get", self._number, "version"))
        self.name: str = call("get", self._number, "name")

    def _complete(self, config: Any) -> dict[str, Any]:
        return {"websocket": self._websocket, **(config or {})}

    def reload(self, config: Any) -> None:
        call("do", self._number, "reload", self._complete(config))

    @property
    def url(self) -> str:
        return self.urls["websocket"]

    def __getattr__(self, name: str) -> Any:
        if name in ("port", "pid"):
            return call("get", self._number, name)
        if name not in CALLS:
            raise AttributeError(name)
        return lambda *args: call("do", self._number, name, *args)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def websocket_url(url: str) -> str:
    """Return the URL of the WebSocket of the same server, with the same credentials."""
    return re.sub(r":(\d+)(?=,|$)", lambda port: ":" + PORTS.get(port[1], port[1]), url).replace(
        "nats://", "ws://"
    )


PORTS: dict[str, str] = {}
CALLS = ["stop", "terminate", "kill", "restart", "freeze", "thaw", "lame_duck", "monitor"]
