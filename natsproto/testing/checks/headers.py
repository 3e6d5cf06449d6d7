"""Message headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto.errors import InvalidHeader
from natsproto.testing.context import WAIT, Context, raises
from natsproto.testing.suite import check

if TYPE_CHECKING:
    from natsproto.wire.headers import Headers, HeadersLike


async def _echo(ctx: Context, headers: HeadersLike, payload: bytes = b"data") -> Headers:
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    await client.publish(ctx.subject, payload, headers=headers)
    msg = await sub.next(WAIT)
    assert msg.data == payload
    assert msg.headers is not None
    return msg.headers


@check()
async def check_headers_travel(ctx: Context) -> None:
    """Headers arrive with their message, in order; values keep spaces, colons and umlauts."""
    sent = [("One", "1"), ("Two", "with spaces: and a colon"), ("Three", "größe")]
    assert list((await _echo(ctx, dict(sent))).items()) == sent


@check()
async def check_headers_repeat(ctx: Context) -> None:
    """A header may occur several times."""
    headers = await _echo(ctx, [("Key", "1"), ("Other", "x"), ("Key", "2")])
    assert headers.get_all("Key") == ["1", "2"]
    assert headers["Other"] == "x"


@check()
async def check_headers_without_value(ctx: Context) -> None:
    """A header may be empty."""
    headers = await _echo(ctx, {"Empty": "", "Other": "x"})
    assert headers["Empty"] == ""
    assert headers["Other"] == "x"


@check()
async def check_headers_keep_their_case(ctx: Context) -> None:
    """Header names are sent unchanged and are case-sensitive."""
    headers = await _echo(ctx, [("key", "1"), ("KEY", "2"), ("Key", "3")])
    assert [headers[name] for name in ("Key", "KEY", "key")] == ["3", "2", "1"]


@check()
async def check_headers_without_payload(ctx: Context) -> None:
    """A message may consist of headers alone."""
    assert (await _echo(ctx, {"Key": "value"}, b""))["Key"] == "value"


@check()
async def check_headers_of_sixty_kilobytes(ctx: Context) -> None:
    """A header block of 60 KB arrives."""
    value = "v" * 60_000
    assert (await _echo(ctx, {"Key": value}))["Key"] == value


@check()
async def check_headers_that_would_inject(ctx: Context) -> None:
    """Names and values that would break out of the header block are rejected, not rewritten."""
    client = await ctx.client()
    sub = await client.subscribe(ctx.subject)
    for name, value in [
        ("Key", "a\r\nb"),
        ("Key", "a\nb"),
        ("Key", "a\rb"),
        ("Ke\r\ny", "a"),
        ("Ke:y", "a"),
        ("", "a"),
    ]:
        with raises(InvalidHeader):
            await client.publish(ctx.subject, b"bad", headers={name: value})
    await client.publish(ctx.subject, b"good")
    assert (await sub.next(WAIT)).data == b"good"
