"""dlq: messages that a consumer failed to process, captured by a stream.

A capture is a stream that stores the advisories about failed messages. `ls` and `show` read it
without changing it; `retry` and `discard` settle letters, which removes them from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jetstream.advisories.consumers import MaxDeliverAdvisory, TerminatedAdvisory
from jetstream.advisories.kinds import decode_advisory
from jetstream.errors import MessageNotFound
from natsproto.errors import InvalidValue, TimeoutExpired

from .context import jetstream
from .show import message_text, stored_fields, table

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import AsyncGenerator

    from jetstream import JetStream, StoredMsg
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


class Letter(NamedTuple):
    """An advisory in a capture."""

    number: int  # its sequence in the capture
    advisory: MaxDeliverAdvisory | TerminatedAdvisory

    def json(self) -> dict[str, Any]:
        """Return the letter as an object of JSON."""
        return {"letter": self.number, "kind": self.advisory.kind, **self.advisory.to_json()}


def add(commands: Commands) -> None:
    """Add the group."""
    group = commands.group("dlq", "Messages that a consumer failed to process.")
    parser = group.command("capture", capture, "Store failed messages of a consumer from now on.")
    parser.add_argument("stream", help="name of the stream")
    parser.add_argument("consumer", help="name of the consumer")
    parser.add_argument("capture", help="name of the capture, a stream")
    _named(group.command("ls", list_letters, "List the letters of a capture."))
    parser = group.command("show", show, "Show a letter and its message.")
    _named(parser).add_argument("letter", type=int, help="its number")
    for name, run, text in [
        ("retry", retry, "Publish messages again, and remove their letters."),
        ("discard", discard, "Remove letters."),
    ]:
        parser = group.command(name, run, text)
        _named(parser).add_argument("letters", type=int, nargs="*", help="their numbers")
        parser.add_argument("--all", action="store_true", help="all letters")


def _named(parser: ArgumentParser) -> ArgumentParser:
    parser.add_argument("capture", help="name of the capture")
    return parser


async def letters_of(js: JetStream, capture: str) -> AsyncGenerator[Letter, None]:
    """Yield the letters of a capture, without changing it."""
    stream = await js.stream(capture)
    seq = 1
    while True:
        try:
            msg = await stream.get_msg(seq, next_by_subject=">")
        except MessageNotFound:
            return
        advisory = decode_advisory(msg.data)
        if isinstance(advisory, (MaxDeliverAdvisory, TerminatedAdvisory)):
            yield Letter(msg.seq, advisory)
        seq = msg.seq + 1


async def capture(session: Session) -> None:
    """Run dlq capture."""
    args = session.args
    async with jetstream(session) as js:
        consumer = await js.consumer(args.stream, args.consumer)
        await (await consumer.dead_letters(durable=args.capture)).stop()
    text = f"stream {args.capture} stores failed messages of consumer {args.consumer}"
    session.out.result({"capture": args.capture}, text)


async def list_letters(session: Session) -> None:
    """Run dlq ls."""
    async with jetstream(session) as js:
        found = [letter async for letter in letters_of(js, session.args.capture)]
    rows = [
        [letter.number, letter.advisory.kind, letter.advisory.stream, letter.advisory.consumer]
        + [letter.advisory.stream_seq, letter.advisory.deliveries, letter.advisory.timestamp]
        for letter in found
    ]
    heads = ["LETTER", "KIND", "STREAM", "CONSUMER", "SEQUENCE", "DELIVERIES", "TIME"]
    session.out.result([letter.json() for letter in found], table(heads, rows))


async def show(session: Session) -> None:
    """Run dlq show."""
    number = session.args.letter
    async with jetstream(session) as js:
        letter = await _find(js, session.args.capture, number)
        advisory = letter.advisory
        message: StoredMsg | None = None
        try:
            stream = await js.stream(advisory.stream)
            message = await stream.get_msg(advisory.stream_seq)
        except MessageNotFound:
            session.out.note("the stream no longer has the message")
    fields = {**letter.json(), "message": stored_fields(message) if message else None}
    if session.out.as_json:
        session.out.json(fields)
        return
    head = f"letter {number}: {advisory.kind} of consumer {advisory.consumer}"
    session.out.line(f"{head}, {advisory.deliveries} deliveries, {advisory.timestamp}")
    if message is not None:
        text = f"[{message.seq}] {message.subject}: {len(message.data)} bytes"
        session.out.raw(message_text(text, message))


async def _find(js: JetStream, capture: str, number: int) -> Letter:
    async for letter in letters_of(js, capture):
        if letter.number == number:
            return letter
    raise MessageNotFound(404, 10037, f"capture {capture} has no letter {number}")


async def retry(session: Session) -> None:
    """Run dlq retry."""
    await _settle(session, "retry")


async def discard(session: Session) -> None:
    """Run dlq discard."""
    await _settle(session, "discard")


async def _settle(session: Session, how: str) -> None:
    args = session.args
    if bool(args.letters) == args.all:
        raise InvalidValue("name letters by their numbers, or all of them with --all")
    settled: list[int] = []
    async with jetstream(session) as js:
        chosen = [
            letter
            async for letter in letters_of(js, args.capture)
            if args.all or letter.number in args.letters
        ]
        missing = set(args.letters) - {letter.number for letter in chosen}
        if missing:
            text = f"capture {args.capture} has no letter {min(missing)}"
            raise MessageNotFound(404, 10037, text)
        for owner in sorted({(each.advisory.stream, each.advisory.consumer) for each in chosen}):
            own = {
                each.advisory.id: each.number
                for each in chosen
                if (each.advisory.stream, each.advisory.consumer) == owner
            }
            settled += await _settle_own(js, owner, args.capture, own, how, session.timeout)
    fields = {"settled": sorted(settled), "how": how}
    words = {"retry": "published again", "discard": "discarded"}[how]
    session.out.result(fields, f"{len(settled)} messages {words}")


async def _settle_own(
    js: JetStream,
    owner: tuple[str, str],
    capture: str,
    numbers: dict[str, int],
    how: str,
    timeout: float,
) -> list[int]:
    """Settle letters of one consumer; others that arrive are delivered again after a minute."""
    consumer = js.bind_consumer(*owner)
    settled: list[int] = []
    async with await consumer.dead_letters(durable=capture) as letters:
        while len(settled) < len(numbers):
            try:
                letter = await letters.next(timeout)
            except TimeoutExpired:
                text = f"{len(numbers) - len(settled)} letters did not arrive: another program"
                raise TimeoutExpired(f"{text} may hold them, for up to a minute") from None
            number = numbers.get(letter.advisory.id)
            if number is None:
                continue
            if how == "retry":
                await letter.retry()
            else:
                await letter.discard()
            settled.append(number)
    return settled
