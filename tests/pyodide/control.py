"""The test's side of remote.py: starts and stops servers on request."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from natsproto.testing import Server, free_port
from natsproto.testing.server import _is_free


class Control:
    """The servers of one program."""

    def __init__(self) -> None:
        self._servers: list[Server] = []

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *exc: object) -> None:
        for server in self._servers:
            server.stop()

    def answer(self, request: str | bytes) -> str:
        """Return the answer to a request, as one line of JSON."""
        name, *args = json.loads(request)
        try:
            return json.dumps({"result": getattr(self, name)(*args)})
        except Exception as error:
            return json.dumps({"error": f"{type(error).__name__}: {error}"})

    # What a program can ask for

    def free_port(self) -> int:
        return free_port()

    def is_free(self, port: int) -> bool:
        return _is_free(port)

    def start(self, config: dict[str, Any], jetstream: bool) -> int:
        self._servers.append(Server(config=config, jetstream=jetstream))
        return len(self._servers) - 1

    def get(self, number: int, name: str) -> Any:
        return getattr(self._servers[number], name)

    def do(self, number: int, name: str, *args: Any) -> Any:
        return getattr(self._servers[number], name)(*args)


class Pipes(Control):
    """Answers over two pipes, in a thread, until the program ends."""

    def __init__(self) -> None:
        super().__init__()
        self._requests, self.request_fd = os.pipe()
        self.response_fd, self._responses = os.pipe()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        # The program has ended, and with it its ends of the pipes.
        os.close(self.request_fd)
        os.close(self.response_fd)
        self._thread.join()
        super().__exit__()

    def _serve(self) -> None:
        with os.fdopen(self._requests) as requests, os.fdopen(self._responses, "w") as responses:
            for line in requests:
                responses.write(self.answer(line) + "\n")
                responses.flush()
