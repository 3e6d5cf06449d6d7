"""A small counter of checks for MicroPython: a failed check is printed, and the others continue."""

from natsproto import NatsError, ProtocolError

ran = 0
failed = 0


def check(label, got, want):
    global ran, failed
    ran += 1
    if got != want:
        failed += 1
        print("FAILED %s\n  got  %r\n  want %r" % (label, got, want))


def outcome(call):
    """Return the result of a call; for an error, its class and its position or rule."""
    try:
        return call()
    except ProtocolError as error:
        return "ProtocolError", error.reason, error.offset, error.excerpt, len(error.frames)
    except (NatsError, UnicodeError) as error:
        return error.__class__.__name__, getattr(error, "rule", "")


def table(label, rows):
    """Check rows of a call and its outcome."""
    for i, (call, want) in enumerate(rows):
        check("%s, row %d" % (label, i), outcome(call), want)


def report():
    print("%d checks, %d failed" % (ran, failed))
