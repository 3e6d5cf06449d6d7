from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsproto import HeaderError, Headers, InvalidHeader
from natsproto.wire import headers as module
from natsproto.wire.headers import check_header, read_status

START = b"NATS/1.0\r\n"
BARE = r"header block has a bare CR or LF: b'NATS/1.0\r\n"


@pytest.mark.rule("HDR-1", "HDR-3", "HDR-4", "HDR-11")
@pytest.mark.parametrize(
    ("lines", "items"),
    [
        (b"", []),
        (b"A: b\r\n", [("A", "b")]),
        (b"A:b\r\n", [("A", "b")]),
        (b"A:\r\n", [("A", "")]),
        (b"A: \t \r\n", [("A", "")]),
        (b"A: \t b c \t\r\n", [("A", "b c")]),
        (b"A: b:c\r\n", [("A", "b:c")]),
        (b"A: :\r\n", [("A", ":")]),
        (b"A: b\x0b\x00\r\n", [("A", "b\x0b\0")]),  # only spaces and tabs are whitespace
        (b"A: 1\r\nB: x\r\nA: 2\r\n", [("A", "1"), ("B", "x"), ("A", "2")]),
        (b"A B: c\r\n", [("A B", "c")]),  # not ours to send, but no harm to read
        ("A: é\r\nB: 힣\r\n".encode(), [("A", "é"), ("B", "힣")]),
        (b"A: \xc3\xa9\r\nB: \xff\r\n", [("A", "é"), ("B", "\udcff")]),
        (b"A: \xc3\xa9\r\nB: \xed\xa0\x80\r\n", [("A", "é"), ("B", "\udced\udca0\udc80")]),
    ],
)
def test_a_block_is_read_line_by_line(lines, items):
    assert Headers.decode(START + lines + b"\r\n").items() == items


@pytest.mark.rule("HDR-5")
@pytest.mark.parametrize(
    ("block", "status", "description", "items"),
    [
        (b"NATS/1.0 503\r\n\r\n", 503, "", []),
        (b"NATS/1.0 503\r\nNats-Subject: a\r\n\r\n", 503, "", [("Nats-Subject", "a")]),
        (b"NATS/1.0 404 No Messages\r\n\r\n", 404, "No Messages", []),
        (b"NATS/1.0 408 Request Timeout\r\nA: b\r\n\r\n", 408, "Request Timeout", [("A", "b")]),
        (b"NATS/1.0   409   Two  words  \r\n\r\n", 409, "Two  words", []),
        (b"NATS/1.0 100 \xff\r\n\r\n", 100, "\udcff", []),
        (b"NATS/1.0 \r\n\r\n", 0, "", []),
        (b"NATS/1.0\r\n\r\n", 0, "", []),
        (b"NATS/1.0 50\r\n\r\n", 0, "", []),
        (b"NATS/1.0 5031\r\n\r\n", 0, "", []),
        (b"NATS/1.0 +50\r\n\r\n", 0, "", []),
        (b"NATS/1.0 5_0\r\n\r\n", 0, "", []),
        (b"NATS/1.0 No Messages\r\n\r\n", 0, "", []),
        ("NATS/1.0 ٤٠٤\r\n\r\n".encode(), 0, "", []),  # digits, but not ASCII
    ],
)
def test_the_first_line_may_have_a_status(block, status, description, items):
    assert read_status(block) == (status, description)
    assert Headers.decode(block).items() == items


@pytest.mark.rule("HDR-6")
def test_a_header_called_status_is_a_header():
    block = START + b"Status: 503\r\nDescription: x\r\n\r\n"
    assert read_status(block) == (0, "")
    assert Headers.decode(block)["Status"] == "503"


@pytest.mark.rule("HDR-7")
@pytest.mark.parametrize(
    ("block", "status", "problem"),
    [
        (b"", 0, "header block does not end with an empty line: b''"),
        (b"NATS/1.0", 0, "header block does not end with an empty line: b'NATS/1.0'"),
        (b"NATS/1.0 503", 503, "header block does not end with an empty line: b'NATS/1.0 503'"),
        (b"NATS/1.0 503x", 0, "header block does not end with an empty line: b'NATS/1.0 503x'"),
        (
            b"NATS/1.0 404 No\n\n",
            404,
            r"header block does not end with an empty line: b'NATS/1.0 404 No\n\n'",
        ),
        (START + b"A: b", 0, r"header block does not end with an empty line: b'NATS/1.0\r\nA: b'"),
        (
            b"HELLO\r\nA: b\r\n\r\n",
            0,
            r"header block does not start with NATS/1.0: b'HELLO\r\nA: b\r\n\r\n'",
        ),
        (
            b"NATS/1.1\r\n\r\n",
            0,
            r"header block does not start with NATS/1.0: b'NATS/1.1\r\n\r\n'",
        ),
        (
            b"NATS/1.0503\r\n\r\n",
            0,
            r"header block does not start with NATS/1.0: b'NATS/1.0503\r\n\r\n'",
        ),
        (
            b"nats/1.0 503\r\n\r\n",
            0,
            r"header block does not start with NATS/1.0: b'nats/1.0 503\r\n\r\n'",
        ),
        (  # a header that hides in the first line
            b"NATS/1.0 503\nA: b\r\n\r\n",
            503,
            r"header block has a bare CR or LF: b'NATS/1.0 503\nA: b\r\n\r\n'",
        ),
        (START + b"nocolon\r\n\r\n", 0, "header line has no name and colon: b'nocolon'"),
        (START + b": v\r\n\r\n", 0, "header line has no name and colon: b': v'"),
        (START + b"\r\n\r\n", 0, "header line has no name and colon: b''"),
        (START + b"A : b\r\n\r\n", 0, "header name has whitespace around it: b'A : b'"),
        (START + b"A\t: b\r\n\r\n", 0, r"header name has whitespace around it: b'A\t: b'"),
        (START + b"A: b\r\n c: d\r\n\r\n", 0, "header name has whitespace around it: b' c: d'"),
        (
            START + b"A: b\r\n\tc: d\r\n\r\n",
            0,
            r"header name has whitespace around it: b'\tc: d'",
        ),
        (START + b"A: b\nC: d\r\n\r\n", 0, BARE + r"A: b\nC: d\r\n\r\n'"),
        (START + b"A: b\rC: d\r\n\r\n", 0, BARE + r"A: b\rC: d\r\n\r\n'"),
        (START + b"A\r: b\r\n\r\n", 0, BARE + r"A\r: b\r\n\r\n'"),
    ],
)
def test_an_odd_block_is_refused_but_its_status_is_not_lost(block, status, problem):
    assert read_status(block)[0] == status
    with pytest.raises(HeaderError) as error:
        Headers.decode(block)
    assert str(error.value) == problem


@pytest.mark.rule("HDR-7")
def test_the_error_shows_64_bytes_of_a_long_block():
    with pytest.raises(HeaderError) as error:
        Headers.decode(b"x" * 100 + b"\r\n\r\n")
    assert str(error.value) == "header block does not start with NATS/1.0: b'%s'" % ("x" * 64)
    with pytest.raises(HeaderError) as error:
        Headers.decode(b"x" * 100)
    assert str(error.value) == "header block does not end with an empty line: b'%s'" % ("x" * 64)


@pytest.mark.rule("HDR-7")
@given(st.binary())
def test_any_input_is_a_block_or_a_header_error(block):
    code, description = read_status(block)
    assert 0 <= code <= 999
    assert isinstance(description, str)
    try:
        headers = Headers.decode(block)
    except HeaderError:
        return
    assert Headers.decode(headers.encode()) == headers


@pytest.mark.rule("HDR-8")
@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\xc3", "é".encode(), "é".encode() + b"\xff"])
def test_bytes_that_are_not_utf8_survive(raw):
    block = START + b"A: " + raw + b"\r\n\r\n"
    headers = Headers.decode(block)
    assert headers.encode() == block
    assert Headers([("A", headers["A"])]).encode() == block  # sent on as a header of our own


def fresh() -> Headers:
    return Headers([("Key", "1"), ("key", "2"), ("Key", "3"), ("B", "4")])


@pytest.mark.rule("HDR-2", "HDR-3")
def test_lookups_are_case_sensitive_and_find_every_value():
    headers = fresh()
    assert (headers["Key"], headers["key"]) == ("1", "2")
    assert (headers.get("Key"), headers.get("KEY"), headers.get("KEY", "x")) == ("1", "", "x")
    assert (headers.get_all("Key"), headers.get_all("KEY")) == (["1", "3"], [])
    assert "Key" in headers
    assert "KEY" not in headers
    with pytest.raises(KeyError, match="KEY"):
        headers["KEY"]
    assert headers.keys() == list(headers) == ["Key", "key", "B"]
    assert len(headers) == 4


@pytest.mark.rule("HDR-12")
@pytest.mark.parametrize(
    ("change", "items"),
    [
        (lambda h: h.append("Key", "5"), "Key=1 key=2 Key=3 B=4 Key=5"),
        (lambda h: h.append("KEY", "5"), "Key=1 key=2 Key=3 B=4 KEY=5"),
        (lambda h: h.set("Key", "5"), "key=2 B=4 Key=5"),
        (lambda h: h.set("KEY", "5"), "Key=1 key=2 Key=3 B=4 KEY=5"),
        (lambda h: h.delete("Key"), "key=2 B=4"),
        (lambda h: h.delete("KEY"), "Key=1 key=2 Key=3 B=4"),
    ],
)
def test_changes_are_case_sensitive(change, items):
    headers = fresh()
    change(headers)
    assert " ".join([f"{name}={value}" for name, value in headers.items()]) == items


@pytest.mark.rule("HDR-12")
@pytest.mark.parametrize("change", [Headers.append, Headers.set])
def test_a_refused_change_changes_nothing(change):
    headers = fresh()
    with pytest.raises(InvalidHeader):
        change(headers, "Key", "a\r\nb")
    assert headers == fresh()


@pytest.mark.rule("HDR-11")
@pytest.mark.parametrize(
    "items",
    [
        {"A": ["1", "2"], "B": "3"},
        {"A": ("1", "2"), "B": ["3"]},
        [("A", "1"), ("A", "2"), ("B", "3")],
        iter([("A", ["1", "2"]), ["B", "3"]]),
        Headers([("A", "1"), ("A", "2"), ("B", "3")]),
    ],
    ids=["dict", "tuples", "pairs", "iterator", "Headers"],
)
def test_headers_accept_mappings_and_pairs(items):
    assert Headers(items).encode() == START + b"A: 1\r\nA: 2\r\nB: 3\r\n\r\n"


@pytest.mark.rule("HDR-1")
def test_no_headers_are_an_empty_block():
    assert Headers().encode() == Headers({"A": []}).encode() == START + b"\r\n"


@pytest.mark.rule("HDR-9", "HDR-10")
@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("", "v", "header name is empty (value 'v') (HDR-9)"),
        ("A:", "v", "header name 'A:' contains ':' (HDR-9)"),
        ("A b", "v", "header name 'A b' contains ' ' (HDR-9)"),
        ("A\r\nB", "v", r"header name 'A\r\nB' contains '\r' (HDR-9)"),
        ("é", "v", "header name 'é' contains 'é' (HDR-9)"),
        ("\x7f", "v", r"header name '\x7f' contains '\x7f' (HDR-9)"),
        (b"A", "v", "header b'A': 'v' is not a pair of str (HDR-9)"),
        ("A", 5, "header 'A': 5 is not a pair of str (HDR-9)"),
        ("A", "a\nb", r"value 'a\nb' of header 'A' contains '\n' (HDR-10)"),
        ("A", "a\rb", r"value 'a\rb' of header 'A' contains '\r' (HDR-10)"),
        ("A", "a\0b", r"value 'a\x00b' of header 'A' contains '\x00' (HDR-10)"),
        ("A", " a", "value ' a' of header 'A' has whitespace around it (HDR-10)"),
        ("A", "a\t", r"value 'a\t' of header 'A' has whitespace around it (HDR-10)"),
        ("A", "\ud800", r"value '\ud800' of header 'A' is not UTF-8 (HDR-10)"),
    ],
    ids=ascii,
)
def test_invalid_names_and_values_are_rejected(name, value, problem):
    with pytest.raises(InvalidHeader) as error:
        check_header(name, value)
    assert str(error.value) == problem
    assert error.value.rule in problem


@pytest.mark.rule("HDR-9")
@pytest.mark.parametrize("items", [5, [("A",)], [("A", "1", "2")], [5]])
def test_other_types_than_mappings_and_pairs_are_rejected(items):
    with pytest.raises(InvalidHeader) as error:
        Headers(items)
    assert str(error.value) == f"headers are neither a mapping nor pairs: {items!r} (HDR-9)"


@pytest.mark.rule("HDR-9", "HDR-10")
def test_every_legal_character_arrives_as_it_is():
    name = "".join([chr(code) for code in range(33, 127) if chr(code) != ":"])
    value = "é\x01\x0b\x0c\x1f\x7f\x85\u2028 \t😀"
    assert Headers.decode(Headers({name: value}).encode()).items() == [(name, value)]


def test_equality_and_repr():
    assert Headers({"A": "1"}) == Headers([("A", "1")])
    assert Headers({"A": "1"}) != Headers({"a": "1"})
    assert Headers({"A": "1"}).__eq__([("A", "1")]) is NotImplemented
    assert repr(Headers({"A": ["1", "2"]})) == "Headers([('A', '1'), ('A', '2')])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Headers())


def test_items_are_a_copy():
    headers = fresh()
    headers.items().clear()
    assert headers == fresh()


BLOCK = b"NATS/1.0\r\nOrder-Id: 4711\r\nA:\r\nA: \xc3\xa9 \r\n\r\n"
PAIRS = [("Order-Id", "4711"), ("A", ""), ("A", "\u00e9")]


def known():
    """Return the number of layouts that are remembered for blocks with as many lines."""
    return len(module._layouts.get(BLOCK.count(b"\n"), ()))


@pytest.fixture
def layouts():
    """Remember the layout of BLOCK and no other."""
    module._layouts.clear()
    Headers.decode(BLOCK)
    assert known() == 1


@pytest.mark.rule("HDR-2", "HDR-3", "HDR-4")
def test_the_headers_of_a_known_layout_are_the_same(layouts):
    for block, order in [(BLOCK, "4711"), (BLOCK.replace(b"4711", b"\t08 15"), "08 15")]:
        pairs = [("Order-Id", order), *PAIRS[1:]]
        headers = Headers.decode(block)
        assert headers._raw is not None
        found = (headers["Order-Id"], headers.get("A"), headers.get("a"), headers.get("B", "?"))
        assert found == (order, "", "", "?")
        with pytest.raises(KeyError):
            headers["a"]
        assert headers._raw is not None  # nothing was decoded for that
        assert (headers.items(), headers._raw) == (pairs, None)
        assert (headers["Order-Id"], headers.get("A"), headers.get("B", "?")) == (order, "", "?")
        for read in (Headers.keys, Headers.encode, len, repr, lambda of: of.get_all("A")):
            assert read(Headers.decode(block)) == read(Headers(pairs))
        assert Headers.decode(block) == Headers(pairs)
    assert known() == 1


@pytest.mark.rule("HDR-12")
def test_headers_of_a_known_layout_can_be_changed(layouts):
    headers = Headers.decode(BLOCK)
    headers.append("B", "2")
    assert (headers.get("B"), headers.items()) == ("2", [*PAIRS, ("B", "2")])
    headers = Headers.decode(BLOCK)
    headers.set("A", "1")
    assert (headers["A"], headers.get_all("A")) == ("1", ["1"])
    headers = Headers.decode(BLOCK)
    headers.delete("A")
    assert (headers.get("A", "?"), headers.items()) == ("?", PAIRS[:1])


def test_copies_of_headers_of_a_known_layout_are_independent(layouts):
    for clone in (copy.copy, copy.deepcopy, lambda of: pickle.loads(pickle.dumps(of))):
        headers = Headers.decode(BLOCK)
        cloned = clone(headers)
        cloned.set("A", "1")
        assert (cloned["A"], Headers.decode(BLOCK)["A"]) == ("1", "")


def outcome(decode):
    """Return the pairs, or the text of the error."""
    try:
        return decode()
    except HeaderError as error:
        return str(error)


def edits(block):
    """Yield every block that differs in one place, by one of the bytes that have a meaning."""
    for place in range(len(block) + 1):
        yield block[:place] + block[place + 1 :]
        yield block[:place]
        yield block[place:]
        for byte in (
            b"\r",
            b"\n",
            b"\r\n",
            b" ",
            b"\t",
            b":",
            b"x",
            b"\0",
            b"\xed",
            b"\xff",
            b"\xed\xb2\x80",
        ):
            yield block[:place] + byte + block[place:]
            yield block[:place] + byte + block[place + 1 :]


@pytest.mark.rule("HDR-1", "HDR-7", "HDR-8")
def test_a_known_layout_makes_no_other_difference(layouts):
    count = 0
    for block in edits(BLOCK):
        expected = outcome(lambda: module._decode(block))  # noqa: B023
        first = dict(reversed(expected)) if isinstance(expected, list) else {}
        module._layouts.clear()
        Headers.decode(BLOCK)
        for _ in range(2):  # the second time, its own layout may be known as well
            found = outcome(lambda: Headers.decode(block))  # noqa: B023
            if isinstance(found, str):
                assert found == expected, block
                continue
            count += found._raw is not None
            assert {name: found.get(name) for name in first} == first, block
            assert found.items() == expected, block
    assert count > 100


def test_few_layouts_are_remembered(layouts):
    for number in range(20):
        Headers.decode(BLOCK.replace(b"Order", b"%d" % number))
        assert known() <= module._MAX_ALIKE
    module._layouts.clear()
    for block in (
        BLOCK.replace(b"4711", bytes(b"x" * 1024)),  # a large one
        BLOCK.replace(b"Order", b"\xc3\x84"),  # a name that is not ASCII
        BLOCK.replace(b"1.0", b"1.0 503"),  # with a status
        b"NATS/1.0\r\n\r\n",  # without headers
    ):
        Headers.decode(block)
    assert module._layouts == {}


def test_a_device_remembers_no_layouts(monkeypatch):
    monkeypatch.setattr(module, "HAS_MEMORY", False)
    module._layouts.clear()
    headers = Headers.decode(BLOCK)
    assert (headers["A"], headers.get("Order-Id"), headers.items()) == ("", "4711", PAIRS)
    headers = Headers(PAIRS)
    assert (headers["A"], headers.get("Order-Id"), headers.items()) == ("", "4711", PAIRS)
    assert module._layouts == {}
