from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from natsproto.wire import text as _text
from natsproto.wire.text import cut_middle, shorten, show

TABLE = [
    (b"", ""),
    (b"orders.new", "orders.new"),
    (b"\x00\x7f", "\0\x7f"),
    ("é☃😀".encode(), "é☃😀"),
    ("한글".encode(), "한글"),  # its UTF-8 begins like that of a surrogate
    (b"\xff\xfe", "\udcff\udcfe"),
    (b"\x80", "\udc80"),
    (b"a\xc3", "a\udcc3"),  # a character cut short
    (b"\xed\xa0\x80", "\udced\udca0\udc80"),  # a surrogate written as UTF-8
    (
        b"\xc3\xa9\xff",
        "\udcc3\udca9\udcff",
    ),  # one bad byte makes all of them surrogates
]


@pytest.mark.rule("WIRE-15", "HDR-8")
@pytest.mark.parametrize(("raw", "text"), TABLE)
def test_bytes_round_trip_through_text(raw, text):
    assert _text.decode(raw) == text
    assert _text.encode(text) == raw


@pytest.mark.rule("WIRE-15", "HDR-8")
@given(st.binary())
@example("é".encode() + b"\xff")
def test_any_bytes_survive(raw):
    assert _text.encode(_text.decode(raw)) == raw


@given(st.text())
def test_any_text_survives(text):
    assert _text.decode(_text.encode(text)) == text


@pytest.mark.parametrize("char", ["é", "한"])
def test_text_and_stray_bytes_mix(char):
    assert _text.encode(char + "\udcff") == char.encode() + b"\xff"


# Only U+DC80 to U+DCFF stand for bytes. U+DC0A must not turn into an LF.
@pytest.mark.parametrize("code", [0xD800, 0xDC00, 0xDC0A, 0xDC0D, 0xDC20, 0xDC7F, 0xDD00, 0xDFFF])
@pytest.mark.parametrize("before", ["", "a", "한", "\udcff"], ids=ascii)
def test_other_surrogates_are_refused(before, code):
    with pytest.raises(UnicodeError):
        _text.encode(before + chr(code))


SHORTENED = [  # value, what is shown of it
    ("a" * 80, repr("a" * 80)),
    ("a" * 81, "'" + "a" * 79 + "... (81 characters)"),
    (b"a" * 80, repr(b"a" * 80)),
    (b"a" * 1000, "b'" + "a" * 78 + "... (1000 bytes)"),
    ("\n" * 40, repr("\n" * 40)),
    ("\n" * 80, "'" + r"\n" * 39 + "\\... (80 characters)"),
    (b"\0" * 80, "b'" + r"\x00" * 19 + r"\x" + "... (80 bytes)"),
    (12.5, "12.5"),
    (None, "None"),
    (["a"] * 100, str(["a"] * 100)[:80] + "... (500 characters)"),
    (10**5000, "<int>"),
]


@pytest.mark.rule("D-ERR-11")
@pytest.mark.parametrize(("value", "text"), SHORTENED, ids=range(len(SHORTENED)))
def test_values_are_shown_in_part(value, text):
    assert shorten(value) == text


@pytest.mark.rule("D-ERR-11")
def test_a_long_text_keeps_its_start_and_its_end():
    assert cut_middle("abcdef", 6, 2) == "abcdef"
    assert cut_middle("abcdefg", 6, 2) == "ab... (7 characters) ...fg"
    assert cut_middle("a" * 200) == "a" * 200
    assert cut_middle("a" * 80 + "b" * 80 + "c" * 80) == (
        "a" * 80 + "... (240 characters) ..." + "c" * 80
    )


@pytest.mark.rule("D-ERR-11")
def test_structures_are_cut_later_than_text():
    assert show("a" * 81) == "'" + "a" * 79 + "... (81 characters)"
    assert show(b"a" * 81) == "b'" + "a" * 78 + "... (81 bytes)"
    assert show(["a"] * 80) == str(["a"] * 80)
    assert show(["a"] * 100) == str(["a"] * 100)[:400] + "... (500 characters)"
