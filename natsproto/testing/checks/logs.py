"""The log: events that the client writes to the logger `natsproto`."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from natsproto.errors import AuthorizationFailed
from natsproto.events import Connected, Disconnected, ServerError, SlowConsumer
from natsproto.testing.context import WAIT, Context, arrived, next_event, raises
from natsproto.testing.suite import check

from .reconnect import back

if TYPE_CHECKING:
    from collections.abc import Generator


class Collector(logging.Handler):
    """Keeps the records of one client."""

    def __init__(self, client: str) -> None:
        super().__init__(logging.DEBUG)
        self.client: str = client
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "nats_client", "") == self.client:
            self.records.append(record)

    def seen(self) -> list[tuple[str, str]]:
        """Return the level and the event of each record."""
        return [(each.levelname, getattr(each, "nats_event", "")) for each in self.records]

    def of(self, event: str) -> logging.LogRecord:
        """Return the first record of this event."""
        return next(each for each in self.records if getattr(each, "nats_event", "") == event)


@contextmanager
def collected(client: str) -> Generator[Collector, None, None]:
    """Collect the records of the client with this name, at all levels."""
    collector = Collector(client)
    logger = logging.getLogger("natsproto")
    level = logger.level
    logger.addHandler(collector)
    logger.setLevel(logging.DEBUG)
    try:
        yield collector
    finally:
        logger.setLevel(level)
        logger.removeHandler(collector)


@check()
async def check_log_of_an_outage(ctx: Context) -> None:
    """Each connect is logged as information, and the loss of a connection as a warning."""
    server = ctx.own_server()
    with collected(ctx.subject) as log:
        client = await ctx.connect(server, name=ctx.subject)
        server.kill()
        await next_event(client, Disconnected)
        server.restart()
        await back(client)
        await client.close()
    seen = [each for each in log.seen() if each[1] != "AttemptFailed"]
    assert seen == [
        ("INFO", "Connected"),
        ("WARNING", "Disconnected"),
        ("INFO", "Connected"),
        ("INFO", "Closed"),
    ], seen
    lost = log.of("Disconnected")
    assert vars(lost)["nats_url"] == server.url, vars(lost)
    assert lost.getMessage().startswith("disconnected from " + server.url)


@check()
async def check_log_without_credentials(ctx: Context) -> None:
    """No record contains the user or the password of the URL."""
    server = ctx.shared_server(authorization={"user": "ulrich", "password": "hush-hush"})
    with collected(ctx.subject) as log:
        url = server.url.replace("nats://", "nats://ulrich:hush-hush@")
        client = await ctx.connect(url, name=ctx.subject)
        await client.close()
        url = server.url.replace("nats://", "nats://ulrich:hush-hush-2@")
        with raises(AuthorizationFailed, within=2 * WAIT):
            await ctx.connect(url, name=ctx.subject)
    text = repr([vars(record) for record in log.records])
    assert "ulrich" not in text, text
    assert "hush" not in text, text
    assert ("WARNING", "AttemptFailed") in log.seen()


@check()
async def check_log_of_a_denial(ctx: Context) -> None:
    """A permissions violation is a warning; many equal ones are one record."""
    users = [{"user": "u", "password": "p", "permissions": {"publish": {"deny": ["no"]}}}]
    server = ctx.shared_server(authorization={"users": users})
    with collected(ctx.subject) as log:
        client = await ctx.connect(server, user="u", password="p", name=ctx.subject)
        for _ in range(5):
            await client.publish("no", b"payload of the message")
        await client.flush(WAIT)
        for _ in range(5):
            await next_event(client, ServerError)
    assert log.seen() == [("INFO", "Connected"), ("WARNING", "ServerError")], log.seen()
    assert "payload" not in repr(vars(log.of("ServerError")))


@check()
async def check_log_of_a_slow_consumer(ctx: Context) -> None:
    """Dropped messages are a warning, with the subscription."""
    other = await ctx.client()
    with collected(ctx.subject) as log:
        client = await ctx.client(name=ctx.subject)
        await next_event(client, Connected)
        sub = await client.subscribe(ctx.subject, max_msgs=1)
        await client.flush(WAIT)
        for _ in range(3):
            await other.publish(ctx.subject)
        await arrived(other, client)
        await next_event(client, SlowConsumer)
    record = vars(log.of("SlowConsumer"))
    assert (record["levelname"], record["nats_subject"]) == ("WARNING", ctx.subject)
    assert 1 <= record["nats_dropped"] <= sub.dropped == 2, record
