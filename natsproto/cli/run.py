"""Run one command, from its connection to its exit code.

Ctrl-C and SIGTERM cancel the command, which then closes its connection as usual. A reader that goes
away, as `head` does, ends the command quietly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from natsproto.adapters.asyncio import connect
from natsproto.events import AttemptFailed, Connected, Disconnected, ServerError, SlowConsumer

from . import exits
from .options import connect_options, timeout_of
from .output import Output

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator, Generator

    from natsproto.client import Client
    from natsproto.events import Event


class Session:
    """The context of a command: its arguments, its output, and a connection on request."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.out: Output = Output(args.json)
        self.timeout: float = timeout_of(args)

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncGenerator[Client, None]:
        """Connect; a live command reconnects forever, and reports each reconnect on stderr."""
        servers, chosen = connect_options(self.args, "natsproto command")
        if self.args.live:
            chosen["max_reconnects"] = -1
        chosen.update(options)
        async with connect(servers, **chosen) as client:
            if not self.args.live:
                yield client
                return
            reports = asyncio.create_task(self._report(client))
            try:
                yield client
            finally:
                reports.cancel()

    async def _report(self, client: Client) -> None:
        async for event in client.events:
            text = describe(event)
            if text and not self.out.as_json:
                self.out.note(text)


def describe(event: Event) -> str:
    """Return a line about an event of the connection; "" if it is not worth printing."""
    if isinstance(event, Connected):
        return f"connected again to {event.url}" if event.again else ""
    if isinstance(event, Disconnected):
        return f"disconnected from {event.url}: {event.error}" if event.error else ""
    if isinstance(event, AttemptFailed):
        return f"{event.url}: {event.error}"
    if isinstance(event, ServerError):
        return f"{event.error}"
    if isinstance(event, SlowConsumer):
        return f"{event.dropped} messages were dropped: this command does not keep up"
    return ""


def run(args: Namespace, codes: list[tuple[type[BaseException], int]] = exits.CODES) -> int:
    """Run a command and return its exit code."""
    session = Session(args)
    # Commands print what people need to know; without a handler, warnings would be printed twice.
    logging.getLogger("natsproto").addHandler(logging.NullHandler())
    try:
        asyncio.run(_until_signal(session))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return exits.OK if args.live else exits.INTERRUPTED  # D-CLI-3
    except BrokenPipeError:  # D-CLI-4
        _leave_pipe()
        return exits.OK
    except Exception as error:
        code = exits.code_of(error, codes)
        session.out.error(error, code)
        return code
    return exits.OK


async def _until_signal(session: Session) -> None:
    task: Any = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError):  # on Windows, or not in the main thread
            loop.add_signal_handler(number, task.cancel)
    await session.args.run(session)


@contextmanager
def interruptible() -> Generator[None, None, None]:
    """Let signals end a call that blocks the event loop, such as a read of stdin (D-CLI-3)."""
    kept: dict[int, Any] = {}
    with suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            kept[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)


def _leave_pipe() -> None:
    """Discard the remaining output: the interpreter flushes stdout when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
