"""consume: messages of a consumer, with a live view of the consumer and of this client.

The view is drawn with rich on a terminal. Elsewhere it is a line for each interval, and with --json
an object (D-CLI-7). The figures of the consumer are those of the server, asked for at each
interval. Those of the client are a snapshot of its machine: open pulls, heartbeats, last status.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jetstream.events import Pinned, PullWarning, Unpinned
from natsproto.cli.options import seconds
from natsproto.errors import MissingExtra, NatsError

from .consumer import settle
from .context import jetstream_of
from .show import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jetstream import Consumer, ConsumerInfo, ConsumerSnapshot, Messages
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session
    from natsproto.client import Client

LAST = 5  # events that are shown


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.command(
        "consume",
        consume,
        "Consume messages, with a live view.",
        details="Messages are acknowledged, unless --settle says otherwise.",
        live=True,
    )
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument("consumer", help="name of the consumer")
    how = ["ack", "nak", "term", "none"]
    parser.add_argument("--settle", choices=how, default="ack", help="what to do with messages")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N messages")
    parser.add_argument("--interval", type=seconds, default=1.0, metavar="SECONDS", help="(1)")
    parser.add_argument("--buffer", type=int, default=500, metavar="N", help="to keep ready (500)")
    parser.add_argument("--group", help="priority group to join")


class View:
    """The figures of one interval, and of the whole run."""

    def __init__(self, client: Client, consumer: Consumer, messages: Messages) -> None:
        self._client = client
        self._consumer = consumer
        self._messages = messages
        self._began = self._last = time.monotonic()
        self._before = (0, 0)
        self.count: int = 0
        self.bytes: int = 0
        self.redelivered: int = 0
        self.events: deque[str] = deque(maxlen=LAST)

    def note(self, text: str) -> None:
        """Keep an event for the view."""
        self.events.append(f"{time.strftime('%H:%M:%S')} {text}")

    async def fields(self) -> dict[str, Any]:
        """Return the figures since the last call."""
        now = time.monotonic()
        took = max(now - self._last, 1e-6)
        count, size = self.count - self._before[0], self.bytes - self._before[1]
        self._last, self._before = now, (self.count, self.bytes)
        fields: dict[str, Any] = {
            "seconds": round(now - self._began, 3),
            "server": self._client.connected_url or self._client.state,
            "messages": self.count,
            "rate": round(count / took, 1),
            "bytes_per_second": round(size / took),
            "redelivered": self.redelivered,
        }
        fields.update(client_fields(self._messages.snapshot()))
        fields.update(await self._server())
        fields["events"] = list(self.events)
        return fields

    async def _server(self) -> dict[str, Any]:
        try:
            info = await self._consumer.info()
        except NatsError as error:
            self.note(f"info: {error}")
            return {}
        return server_fields(info)


def client_fields(snapshot: ConsumerSnapshot) -> dict[str, Any]:
    """Return the figures of the machine that pulls."""
    return {
        "buffered": snapshot.pending,
        "open_pulls": len(snapshot.pulls),
        "level": snapshot.level,
        "heard_ago": None if snapshot.heard_ago is None else round(snapshot.heard_ago, 3),
        "last_status": snapshot.last_status,
        "pin": snapshot.pin,
        "reason": snapshot.reason,
    }


def server_fields(info: ConsumerInfo) -> dict[str, Any]:
    """Return the figures of the consumer itself."""
    return {
        "pending": info.num_pending,
        "unacknowledged": info.num_ack_pending,
        "redelivering": info.num_redelivered,
        "waiting_pulls": info.num_waiting,
        "ack_floor": info.ack_floor.stream_seq,
        "paused": info.paused,
        "pinned": [each.pinned_client_id for each in info.priority_groups],
    }


async def consume(session: Session) -> None:
    """Run consume."""
    args = session.args
    options: dict[str, Any] = {"group": args.group} if args.group else {}
    draw = _drawing(session)  # before anything is consumed
    async with session.client() as client:
        js = jetstream_of(session, client)
        consumer = await js.consumer(args.stream, args.consumer)
        messages = consumer.consume(
            max_messages=args.buffer, stop_after=args.count or None, nak_on_exit=True, **options
        )
        async with messages:
            view = View(client, consumer, messages)
            work = [_take(session, messages, view), draw(session, view)]
            tasks = [asyncio.create_task(each) for each in work]
            events = asyncio.create_task(_events(messages, view))
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in (*tasks, events):
                    task.cancel()
                await asyncio.gather(*tasks, events, return_exceptions=True)
        _show(session, await view.fields())


async def _take(session: Session, messages: Messages, view: View) -> None:
    """Take and settle messages until the end."""
    async for msg in messages:
        view.count += 1
        view.bytes += len(msg.data)
        view.redelivered += msg.metadata.delivered > 1
        if session.args.settle == "ack" and not msg.settled:
            await msg.ack()
        else:
            await settle(msg, session.args.settle)


async def _events(messages: Messages, view: View) -> None:
    async for event in messages.events:
        if isinstance(event, Pinned):
            view.note("this client is pinned")
        elif isinstance(event, Unpinned):
            view.note("this client is no longer pinned")
        elif isinstance(event, PullWarning):
            view.note(f"{type(event.error).__name__}: {event.error}")
        else:
            view.note(repr(event))


def _drawing(session: Session) -> Callable[[Session, View], Coroutine[Any, Any, None]]:
    """Return the function that shows the view; raise MissingExtra if it needs rich."""
    if session.out.as_json or not sys.stdout.isatty():
        return _print_lines
    if find_spec("rich") is None:
        text = "the live view needs rich; install it with `pip install 'natsproto[cli]'`"
        raise MissingExtra(text)
    return _draw


async def _print_lines(session: Session, view: View) -> None:
    while True:
        await asyncio.sleep(_interval(session))
        _show(session, await view.fields())


async def _draw(session: Session, view: View) -> None:
    from rich.console import Console
    from rich.live import Live

    title = f"{session.args.stream} > {session.args.consumer}"
    console = Console()
    # Ctrl-C is how most views end. The last state stays on the screen, and the ^C that the terminal
    # prints fits after the panel: on a line of its own it would leave a part of the view behind.
    with Live(console=console, refresh_per_second=4) as live:
        while True:
            live.update(panel(title, await view.fields(), console.width - 4), refresh=True)
            await asyncio.sleep(_interval(session))


def _interval(session: Session) -> float:
    return max(float(session.args.interval), 0.05)


def panel(title: str, fields: dict[str, Any], width: int) -> Any:
    """Return the view for a terminal."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3))
    rows = list(rows_of(fields))
    for left, right in zip(rows[::2], [*rows[1::2], ("", "")]):
        grid.add_row(Text(left[0], "dim"), left[1], Text(right[0], "dim"), right[1])
    events = [Text(text, overflow="ellipsis", no_wrap=True) for text in fields["events"]]
    inner = Group(grid, *events)
    return Panel(inner, title=title, subtitle="Ctrl-C ends", title_align="left", width=width)


def rows_of(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the figures for people."""
    heard = fields["heard_ago"]
    rows = [
        ("rate", f"{fields['rate']:,.0f}/s, {amount(fields['bytes_per_second'])}/s"),
        ("messages", f"{fields['messages']:,}"),
        ("redelivered", f"{fields['redelivered']:,}"),
        ("buffered", f"{fields['buffered']:,}"),
        ("open pulls", f"{fields['open_pulls']}"),
        ("heard", "nothing yet" if heard is None else f"{heard:.1f} s ago"),
        ("last status", fields["last_status"] or "none"),
    ]
    if "pending" in fields:
        rows += [
            ("lag", f"{fields['pending']:,} pending"),
            ("unacknowledged", f"{fields['unacknowledged']:,}"),
            ("ack floor", f"{fields['ack_floor']:,}"),
            ("consumer", "paused" if fields["paused"] else "running"),
        ]
        rows += [("pinned", ", ".join(fields["pinned"]) or "no client")] * bool(fields["pinned"])
    return [*rows, ("server", fields["server"]), ("now", fields["reason"])]


def _show(session: Session, fields: dict[str, Any]) -> None:
    text = "  ".join(f"{name} {value}" for name, value in rows_of(fields))
    session.out.result(fields, text)
