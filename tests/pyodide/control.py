"""The test's side of remote.py: starts and stops servers on request."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from natsproto.testing import Server, free_port


class Control:
    """Answers the requests of one program, in a thread, until the program ends."""

    def __init__(self) -> None:
        self._servers: list[Server] = []
        self._requests, self.request_fd = os.pipe()
        self.response_fd, self._responses = os.pipe()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Control:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """The program has ended, and with it the other ends of the pipes."""
        os.close(self.request_fd)
        os.close(self.response_fd)
        self._thread.join()
        for server in self._servers:
            server.stop()

    def _serve(self) -> None:
        with os.fdopen(self._requests) as requests, os.fdopen(self._responses, "w") as responses:
            for line in requests:
                name, *args = json.loads(line)
                try:
                    answer = {"result": getattr(self, name)(*args)}
                except Exception as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                responses.write(json.dumps(answer) + "\n")
                responses.flush()

    # What a program can ask for

    def free_port(self) -> int:
        return free_port()

    def start(self, config: dict[str, Any], jetstream: bool) -> int:
        self._servers.append(Server(config=config, jetstream=jetstream))
        return len(self._servers) - 1

    def get(self, number: int, name: str) -> Any:
        return getattr(self._servers[number], name)

    def do(self, number: int, name: str, *args: Any) -> Any:
        return getattr(self._servers[number], name)(*args)
