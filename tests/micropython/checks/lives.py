"""Lives of a connection, from the first Dial to the end, as inputs and outputs."""

from harness import check

from natsproto.connection import Connection
from natsproto.connection.tokens import Numbers, Tokens
from natsproto.options import Options

INFO = b'INFO {"headers":true,"max_payload":1000,"connect_urls":["b:1"]} \r\n'
INBOX = b"_INBOX." + b"0" * 22


class Dice:
    def random(self):
        return 0.5

    def randrange(self, limit):
        return 0


def make(**options):
    options = Options(servers="nats://joe:hush@a", shuffle=False, **options)
    return Connection(options, rng=Dice(), tokens=Numbers())


def names(things):
    return [thing.__class__.__name__ for thing in things]


def events(connection):
    found = []
    while True:
        event = connection.events.pop()
        if event is None:
            return found
        found.append(event.__class__.__name__)


def sent(connection):
    return b"".join(connection.data_to_send())


def up(connection, now):
    connection.transport_opened(now)
    connection.receive_data(INFO, now)
    sent(connection)
    connection.receive_data(b"PONG\r\n", now)


def handshake():
    connection = make()
    connection.connect(1.0)
    check("dial", repr(connection.take_effects()), "[Dial(host='a', port=4222, shuffle=False)]")
    check("deadline", connection.next_deadline(), 6.0)
    connection.transport_opened(1.1)
    connection.receive_data(INFO[:20], 1.2)
    check("opening", connection.state, "OPENING")
    connection.receive_data(INFO[20:], 1.3)
    greeting = sent(connection)
    check("connect", greeting.startswith(b"CONNECT {"), True)
    check("credentials", b'"pass":"hush"' in greeting, True)
    check("ping", greeting.endswith(b"}\r\nPING\r\n"), True)
    connection.receive_data(b"PONG\r\n", 1.4)
    check("connected", (connection.state, connection.opened.done), ("CONNECTED", True))
    check("events", events(connection), ["Connected", "Discovered"])
    return connection


def traffic():
    connection = handshake()
    mailbox = connection.mailbox(3, 1000)
    connection.subscribe("a.*", mailbox, queue="q")
    connection.publish("a.1", b"hi", "r", {"K": "v"})
    request = connection.start_request("b", deadline=9.0)
    gather = connection.start_gather("c", deadline=9.0, stall=0.5)
    flush = connection.start_flush(9.0)
    block = b"NATS/1.0\r\nK: v\r\n\r\n"
    check(
        "sent",
        sent(connection),
        b"SUB a.* q 1\r\nHPUB a.1 r 18 20\r\n" + block + b"hi\r\nSUB " + INBOX + b".* 2\r\n"
        b"PUB b " + INBOX + b".1 0\r\n\r\nPUB c " + INBOX + b".2 0\r\n\r\nPING\r\n",
    )  # fmt: skip
    connection.receive_data(b"MSG a.1 1 2\r\nhi\r\n" * 5 + b"PING\r\nPONG\r\n", 2.0)
    check("flush", flush.done, True)
    check("pong", sent(connection), b"PONG\r\n")
    check("kept and dropped", (mailbox.pending(), mailbox.dropped), (3, 2))
    check("slow", events(connection), ["SlowConsumer"])
    check("first", mailbox.pop().data, b"hi")
    connection.receive_data(b"HMSG %s.1 2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" % INBOX, 2.0)
    check("nobody", request.error.__class__.__name__, "NoResponders")
    connection.receive_data(b"MSG %s.2 2 1\r\nx\r\n" % INBOX, 3.0)
    connection.handle_timer(3.5)
    check("stall", (gather.done, len(gather.replies)), (True, 1))
    return connection, mailbox


def reconnecting():
    connection, mailbox = traffic()
    connection.publish("taken")
    sent(connection)
    connection.publish("kept")
    connection.unsubscribe(1, after=9)
    flush = connection.start_flush(99.0)
    connection.take_effects()
    connection.receive_data(b"-ERR 'Stale Connection'\r\n", 10.0)
    check("hung up", names(connection.take_effects()), ["Hangup", "Dial"])
    check("flush lost", flush.error.__class__.__name__, "ConnectionLost")
    connection.transport_closed(10.0, OSError(1))
    check("waiting", (connection.state, connection.next_deadline() <= 10.3125), ("WAITING", True))
    connection.handle_timer(10.3125)
    connection.handle_timer(10.3125)
    check("dialled again", names(connection.take_effects()), ["Dial"])
    up(connection, 11.0)
    check(
        "sent again",
        sent(connection),
        b"SUB a.* q 1\r\nUNSUB 1 4\r\nSUB " + INBOX + b".* 2\r\nPUB kept 0\r\n\r\n",
    )
    check("told", events(connection), ["Disconnected", "AttemptFailed", "Connected"])
    return connection, mailbox


def draining():
    connection, mailbox = reconnecting()
    drain = connection.start_drain(99.0)
    check("unsub", sent(connection), b"UNSUB 1\r\nPING\r\n")
    connection.receive_data(b"MSG a.1 1 1\r\nx\r\nPONG\r\n", 12.0)
    check("ended", (mailbox.ended, mailbox.pending(), drain.done), (True, 3, False))
    for _ in range(3):
        mailbox.pop()
    connection.consumed(12.0)
    check("flush", sent(connection), b"PING\r\n")
    connection.receive_data(b"PONG\r\n", 12.1)
    check(
        "closed", (drain.done, connection.state, connection.next_deadline()), (True, "CLOSED", None)
    )
    check("the end", events(connection), ["Closed"])


def failures():
    for data, error in FAILURES:
        connection = make(retry_on_first_connect=True)
        connection.connect(0.0)
        connection.transport_opened(0.0)
        connection.receive_data(data, 0.0)
        found = connection.events.pop()
        check(
            "%r" % data[:20],
            (found and found.error.__class__.__name__, sent(connection)),
            (error, b""),
        )
        check("%r, again" % data[:20], connection.next_deadline() is not None, True)


FAILURES = [
    (b"garbage\r\n", "ProtocolError"),
    (b"INFO []\r\n", "ProtocolError"),
    (b"MSG a 1 0\r\n\r\n", "ProtocolError"),
    (b"-ERR '\xff'\r\n", "ServerFailed"),
]


def tokens():
    check("tokens", Tokens(lambda limit: limit - 1).next(), b"F" * 15 + b"E")
    check("small tokens", Tokens(lambda limit: 0).next(), b"0" * 16)


def run():
    tokens()
    draining()
    failures()
