"""Name lookups in threads, so that a slow name server does not delay anything else."""

from __future__ import annotations

import socket
import threading

from ._sockets import look_up

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from natsproto.connection.effects import Dial

    from ._sockets import Addresses


class Lookups:
    """Lookups in progress, at most one for each name. The caller holds a lock."""

    def __init__(self) -> None:
        self._names: set[tuple[str, int]] = set()

    def start(self, effect: Dial, done: Callable[[Dial, Addresses], None]) -> Addresses | None:
        """Return the addresses if they are known at once; otherwise a thread passes them to `done`.

        Calling it again with the same effect is harmless.
        """
        name = effect.host, effect.port
        if name in self._names:
            return None
        address = _numeric(*name)
        if address is not None:
            return [address]
        thread = threading.Thread(
            target=self._look_up, args=[effect, done], name="natsproto-lookup", daemon=True
        )
        try:
            self._names.add(name)
            thread.start()
        except RuntimeError:  # the interpreter is shutting down and starts no more threads
            self._names.discard(name)
            return look_up(effect)
        return None

    def _look_up(self, effect: Dial, done: Callable[[Dial, Addresses], None]) -> None:
        addresses = look_up(effect)
        self._names.discard((effect.host, effect.port))
        done(effect, addresses)


def _numeric(host: str, port: int) -> Any:
    """Return the entry of getaddrinfo for an IP address, None for a name."""
    for family, address in ((socket.AF_INET, (host, port)), (socket.AF_INET6, (host, port, 0, 0))):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
    return None
