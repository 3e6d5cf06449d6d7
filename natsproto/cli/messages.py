"""pub, sub, req and reply: messages of core NATS."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from natsproto.errors import InvalidValue, TimeoutExpired

from .options import seconds
from .run import interruptible

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import AsyncGenerator

    from natsproto.client import Client
    from natsproto.subscription import Subscription
    from natsproto.wire.frames import Msg

    from .commands import Commands
    from .run import Session


def add(commands: Commands, *, reply: bool = False) -> None:
    """Add the commands; `reply` is not part of `python -m natsproto`."""
    parser = commands.command(
        "pub", publish, "Publish a message.", details="Without a body, stdin is the body."
    )
    add_message(parser)
    parser.add_argument("--reply", default="", metavar="SUBJECT", help="subject for responses")
    parser.add_argument("--count", type=int, default=1, metavar="N", help="publish N times")

    parser = commands.command("sub", subscribe, "Print the messages of a subject.", live=True)
    parser.add_argument("subject", help="a subject, which may have wildcards")
    parser.add_argument("--queue", default="", metavar="NAME", help="join a queue group")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N messages")
    add_raw(parser)

    parser = commands.command(
        "req", request, "Send a request and print the response.", details="Stdin as in pub."
    )
    add_message(parser)
    parser.add_argument(
        "--replies", type=int, default=1, metavar="N", help="wait for N responses; 0: for all"
    )
    add_raw(parser)
    if reply:
        add_reply(commands)


def add_reply(commands: Commands) -> None:
    """Add the command reply."""
    parser = commands.command("reply", respond, "Answer requests.", live=True)
    parser.add_argument("subject", help="a subject, which may have wildcards")
    parser.add_argument("body", nargs="?", help="the answer; by default that of --echo")
    parser.add_argument("--echo", action="store_true", help="answer with the request itself")
    parser.add_argument("--queue", default="", metavar="NAME", help="join a queue group")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after N requests")
    parser.add_argument("--sleep", type=seconds, default=0.0, metavar="SECONDS", help="before each")


def add_message(parser: ArgumentParser) -> None:
    """Add the arguments of a message to publish."""
    parser.add_argument("subject", help="the subject to publish to")
    parser.add_argument("body", nargs="?", help="the payload; by default stdin")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME:VALUE", help="repeatable"
    )


def add_raw(parser: ArgumentParser) -> None:
    """Add the option --raw."""
    parser.add_argument("--raw", action="store_true", help="print payloads only")


def body_of(args: Any) -> bytes:
    """Return the payload from the command line, or from stdin."""
    if args.body is not None:
        return str(args.body).encode("utf-8", "surrogateescape")
    if sys.stdin.isatty():
        return b""
    with interruptible():
        return sys.stdin.buffer.read()


def headers_of(args: Any) -> list[tuple[str, str]]:
    """Return the headers from the command line."""
    pairs: list[tuple[str, str]] = []
    for text in args.header:
        name, colon, value = text.partition(":")
        if not colon:
            raise InvalidValue(f"header is not NAME:VALUE: {text[:80]!r}")
        pairs.append((name, value.strip()))
    return pairs


async def publish(session: Session) -> None:
    """Run pub."""
    args = session.args
    body, headers = body_of(args), headers_of(args)
    async with session.client() as client:
        for _ in range(args.count):
            await client.publish(args.subject, body, reply=args.reply, headers=headers or None)
        await client.flush(session.timeout)
        await _check_permissions(client)
    fields = {"subject": args.subject, "size": len(body), "count": args.count}
    times = "" if args.count == 1 else f", {args.count} times"
    session.out.result(fields, f"published {len(body)} bytes to {args.subject}{times}")


async def _check_permissions(client: Client) -> None:
    """Raise a permission error of the server, which does not say which publish caused it."""
    from natsproto.events import ServerError

    while True:
        try:
            event = await client.events.next(0)
        except TimeoutExpired:
            return
        if isinstance(event, ServerError):
            raise event.error


async def subscribe(session: Session) -> None:
    """Run sub."""
    args = session.args
    async with session.client() as client:
        sub = await client.subscribe(args.subject, queue=args.queue)
        await client.flush(session.timeout)
        session.out.note(f"subscribed to {args.subject}")
        async for number, msg in _numbered(sub, args.count):
            session.out.message(msg, number, args.raw)


async def _numbered(sub: Subscription, count: int) -> AsyncGenerator[tuple[int, Msg], None]:
    """Yield the messages of a subscription with their numbers; `count` of them unless it is 0."""
    number = 0
    async for msg in sub:
        number += 1
        yield number, msg
        if number == count:
            return


async def request(session: Session) -> None:
    """Run req."""
    args = session.args
    body, headers = body_of(args), headers_of(args)
    async with session.client() as client:
        if args.replies == 1:
            replies = [
                await client.request(
                    args.subject, body, timeout=session.timeout, headers=headers or None
                )
            ]
        else:
            replies = await client.request_many(
                args.subject,
                body,
                timeout=session.timeout,
                max_msgs=args.replies,
                headers=headers or None,
            )
    for number, msg in enumerate(replies, 1):
        session.out.message(msg, number, args.raw)
    if not replies:
        raise TimeoutExpired(f"no response to {args.subject} within {session.timeout:g} s")


async def respond(session: Session) -> None:
    """Run reply."""
    args = session.args
    if args.body is None and not args.echo:
        args.echo = True
    async with session.client() as client:
        sub = await client.subscribe(args.subject, queue=args.queue)
        await client.flush(session.timeout)
        session.out.note(f"answering requests to {args.subject}")
        async for number, msg in _numbered(sub, args.count):
            session.out.message(msg, number, False)
            if msg.raw_reply:
                await asyncio.sleep(args.sleep)
                await client.respond(msg, *_answer(args, msg))
        await client.flush(session.timeout)


def _answer(args: Any, msg: Msg) -> tuple[bytes]:
    return (msg.data if args.echo else body_of(args),)
