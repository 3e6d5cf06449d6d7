"""Look-ups of names in threads: a name server that is slow must not hold up anything else."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

from ._sockets import look_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsproto.connection.effects import Dial

    from ._sockets import Addresses


class Lookups:
    """Look-ups that are under way, at most one for each name. The caller has a lock around it."""

    def __init__(self) -> None:
        self._names: set[tuple[str, int]] = set()

    def start(self, order: Dial, done: Callable[[Dial, Addresses], None]) -> Addresses | None:
        """Return the addresses if they are known at once; None: `done` gets them in a thread.

        Call it again with the same order as often as you like.
        """
        name = order.host, order.port
        if name in self._names:
            return None
        address = _numeric(*name)
        if address is not None:
            return [address]
        thread = threading.Thread(
            target=self._look_up, args=[order, done], name="natsproto-lookup", daemon=True
        )
        try:
            self._names.add(name)
            thread.start()
        except RuntimeError:  # at the end of the interpreter there are no new threads
            self._names.discard(name)
            return look_up(order)
        return None

    def _look_up(self, order: Dial, done: Callable[[Dial, Addresses], None]) -> None:
        addresses = look_up(order)
        self._names.discard((order.host, order.port))
        done(order, addresses)


def _numeric(host: str, port: int) -> Any:
    """Return the entry of getaddrinfo for an address, None for a name."""
    for family, address in ((socket.AF_INET, (host, port)), (socket.AF_INET6, (host, port, 0, 0))):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
    return None
