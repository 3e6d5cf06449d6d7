"""Interrupts: Ctrl-C is held back while a caller's thread works on the core."""

from __future__ import annotations

import signal
import threading

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

# Without the wrappers of `signal`, which turn numbers into enums: 0.7 us instead of 7.4.
_get_handler = getattr(signal, "_signal", signal).getsignal
_set_handler = getattr(signal, "_signal", signal).signal


class Interrupts:
    """Context manager that defers Ctrl-C while the core works, and allows it while a call waits.

    Only the main thread receives Ctrl-C. `defer` and `allow` change the handler at most once per
    call.
    """

    def __init__(self) -> None:
        self._handler: Any = None  # the user's, while this class's is installed
        self._welcome = False
        self._came = False

    def defer(self) -> None:
        """Hold back Ctrl-C until `allow`."""
        self._welcome = False  # again, as a signal may interrupt __exit__ before this
        if self._handler is None and threading.current_thread() is threading.main_thread():
            handler = _get_handler(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                _set_handler(signal.SIGINT, self._handle)

    def allow(self) -> None:
        """Restore the user's handler, and call it if Ctrl-C was deferred."""
        if self._handler is not None and threading.current_thread() is threading.main_thread():
            handler = self._handler
            # This raises before it does anything if another handler has an exception to raise. The
            # next call of `allow` then restores the handler, which is therefore kept until now.
            _set_handler(signal.SIGINT, handler)
            self._handler = None
            self._pass_on(handler)

    def _handle(self, number: int, frame: object) -> None:
        self._came = True
        if self._welcome:
            self._pass_on(self._handler)

    def _pass_on(self, handler: Any) -> None:
        if self._came:
            self._came = False
            handler(signal.SIGINT, None)

    def __enter__(self) -> None:
        self._welcome = True
        self._pass_on(self._handler)

    def __exit__(self, *exc: object) -> None:
        self._welcome = False
