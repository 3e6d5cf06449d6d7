"""The adapter for asyncio, which also notes what nats-py shows to programs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from natsproto.adapters.asyncio import AsyncioPort
from natsproto.adapters.logs import LOGGER

if TYPE_CHECKING:
    from natsproto.connection import Connection
    from natsproto.connection.effects import Dial
    from natsproto.connection.waitable import Reports

    from .pool import Choice


class Port(AsyncioPort):
    """Runs a connection on asyncio.

    It keeps the exceptions of the transports by the URL of their server, because nats-py passes
    them on to programs, and notes when a server was dialed.

    By itself natsproto stops if a server rejects the same credentials twice in a row. nats-py
    counts a rejected attempt like any other that failed, so that programs outlast a server whose
    users are not loaded yet. An established connection that ends because its credentials are no
    longer valid is different: nats-py closes, and so does this layer if they are rejected again.
    """

    def __init__(self, connection: Connection, choice: Choice) -> None:
        super().__init__(connection)
        self._choice = choice
        self.causes: dict[str, BaseException] = {}

    def dial(self, effect: Dial) -> None:
        """Note the server that is dialed; forget that it rejected an earlier attempt."""
        server = self.connection.lifecycle.attempts.server
        if server.last_error is not None:  # that of an attempt, not of a connection
            server.auth_error = ""
            # natsproto does not count the first attempt of all.
            server.failures = max(server.failures, 1)
        self._choice.note(server.name)
        super().dial(effect)

    def on_closed(self, error: BaseException | None = None) -> None:
        """Keep the exception."""
        self.causes.pop(self._server(), None)
        if error is not None:
            self.causes[self._server()] = error
        super().on_closed(error)

    def log_events(self, reports: Reports) -> None:
        """Write events to the log, if the program has set up logging.

        Without a handler, Python prints warnings to stderr, where nats-py prints nothing.
        """
        if logging.getLogger(LOGGER).hasHandlers():
            super().log_events(reports)
        else:
            reports.take()

    def pending_bytes(self) -> int:
        """Return how many bytes the transport has not sent yet."""
        protocol = self._protocol
        if protocol is None or protocol.transport is None:
            return 0
        return protocol.transport.get_write_buffer_size()

    def _server(self) -> str:
        return self.connection.lifecycle.attempts.server.name
