"""Servers for checks that run on Pyodide: the test process starts and stops them.

Every server has a WebSocket, and `url` is that of the WebSocket.
"""

from __future__ import annotations

import json
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
        config = dict(config or {})
        listen = f"{self.host}:{call('free_port')}"
        config.setdefault("websocket", {"listen": listen, "no_tls": True})
        self._number: int = call("start", config, jetstream)
        self.urls: dict[str, str] = call("get", self._number, "urls")
        self.version = tuple(call("get", self._number, "version"))
        self.name: str = call("get", self._number, "name")

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


CALLS = ["stop", "terminate", "kill", "restart", "freeze", "thaw", "lame_duck", "reload", "monitor"]
