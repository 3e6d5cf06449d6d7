"""The bytes of real servers and clients, parsed in many pieces: always the frames in the file.

CPython wrote that file, from the whole stream at once, with `describe` below.
"""

from harness import check

from natsproto import (
    Connect,
    Err,
    HeaderError,
    Info,
    Msg,
    Parser,
    ProtocolError,
    Pub,
    Sub,
    Unsub,
)
from natsproto.wire.text import encode

BYTE_BY_BYTE = 4096  # longer streams would take too long here


def write(name):
    """Write down the frames of one stream, once, on CPython."""
    with open("streams/" + name + ".frames", "w") as file:
        file.write("\n".join(replay(peer(name), [read(name)])))


def run(name):
    with open("streams/" + name + ".frames") as file:
        want = file.read().split("\n")
    for way, pieces in ways(read(name)):
        check("%s, %s" % (name, way), replay(peer(name), pieces), want)


def read(name):
    with open("streams/" + name, "rb") as file:
        return file.read()


def peer(name):
    """Return a stream's name ends with the peer that sent it."""
    return name.split(".")[-1]


def ways(stream):
    yield "whole", [stream]
    for seed in range(1, 4):
        yield "cut at random %d" % seed, cut(stream, seed)
    if len(stream) <= BYTE_BY_BYTE:
        yield "byte by byte", [stream[i : i + 1] for i in range(len(stream))]


def cut(stream, seed):
    """Return pieces of random length: a few bytes each, a line or so, a network packet."""
    longest = 10**seed
    pieces = []
    start = 0
    while start < len(stream):
        seed = (seed * 75 + 74) % 65537
        end = start + 1 + seed % longest
        pieces.append(stream[start:end])
        start = end
    return pieces


def replay(sender, pieces):
    """Return the frames of the pieces as lines of text, and the error that ended them."""
    parser = Parser(peer=sender)
    lines = []
    try:
        for piece in pieces:
            lines += [describe(frame) for frame in parser.feed(piece)]
    except ProtocolError as error:
        lines += [describe(frame) for frame in error.frames]
        lines.append("ProtocolError %s %d %r" % (error.reason, error.offset, error.excerpt))
    return lines


def describe(frame):
    """Return a frame as one line of ASCII that is the same on every Python."""
    name = frame.__class__.__name__
    if isinstance(frame, (Msg, Pub)):
        fields = [frame.raw_subject, frame.raw_reply, frame.data, frame.raw_headers]
        fields += [frame.subject, frame.reply, frame.status, frame.description, headers(frame)]
        if isinstance(frame, Msg):
            fields += [frame.sid, frame.size]
    elif isinstance(frame, (Info, Connect)):
        fields = [frame.fields]
    elif isinstance(frame, Sub):
        fields = [frame.subject, frame.sid, frame.queue]
    elif isinstance(frame, Unsub):
        fields = [frame.sid, frame.after]
    else:
        fields = [frame.text] if isinstance(frame, Err) else []
    return name + " " + text(fields)


def headers(frame):
    try:
        return None if frame.headers is None else [list(pair) for pair in frame.headers.items()]
    except HeaderError as error:
        return str(error)


def text(value):
    """Return the repr, but with dicts in order and str as bytes, in which MicroPython differs."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join([text(key) + ": " + text(value[key]) for key in sorted(value)])
    if isinstance(value, list):
        return "[%s]" % ", ".join([text(item) for item in value])
    if isinstance(value, str):
        return "str" + repr(encode(value))
    return repr(value)
