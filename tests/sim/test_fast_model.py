"""The model of fast batches and a real server: the same dialogues, the same answers."""

from __future__ import annotations

import random

import pytest

from jetstream.blocking import JetStream
from jetstream.testing.sim.fast_model import COMMIT, END, PING, FastModel, Message
from natsproto import Parser
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from natsproto.testing.sim.clock import Clock
from natsproto.testing.sim.peer import Peer
from natsproto.wire.frames import Msg

START, APPEND = 0, 1
LARGE = b"x" * 200
MAX_SIZE = 100
STALE = {"Nats-Expected-Last-Sequence": "99"}
SINCE = (2, 15, 1)
SEEDS = 40


def ids(*names):
    return [{"Nats-Msg-Id": name} for name in names]


def steps(*places):
    return [(*place, b"x", None) for place in places]


def run(count):
    return [
        (number, START if number == 1 else APPEND, b"x", None) for number in range(1, count + 1)
    ]


A, B, C = ids("a", "b", "c")
DIALOGUES = {  # mode, flow, and (number, operation, data, headers)
    "normal": ("fail", 2, [*run(5), (6, END, b"", None)]),
    "commit": ("fail", 2, [*run(2), (3, COMMIT, b"x", None)]),
    "a commit alone": ("fail", 2, [(1, COMMIT, b"x", None)]),
    "gap": ("fail", 2, [*run(2), *steps((4, APPEND), (5, APPEND), (5, PING))]),
    "gap, allowed": ("ok", 2, [*run(2), *steps((4, APPEND), (5, APPEND), (5, PING), (6, END))]),
    "error": ("fail", 2, [*run(2), (3, APPEND, b"x", STALE), *steps((4, APPEND), (5, PING))]),
    "error, allowed": (
        "ok",
        2,
        [*run(2), (3, APPEND, b"x", STALE), *steps((4, APPEND), (5, PING), (5, END))],
    ),
    "error of the first": ("fail", 2, [(1, START, b"x", STALE), *steps((2, APPEND))]),
    "error of the first, allowed": (
        "ok",
        2,
        [(1, START, b"x", STALE), *steps((2, APPEND), (3, END))],
    ),
    "error of a commit": ("fail", 2, [*run(3), (4, COMMIT, b"x", STALE)]),
    "error of a commit, allowed": ("ok", 2, [*run(3), (4, COMMIT, b"x", STALE)]),
    "error of a commit alone": ("fail", 2, [(1, COMMIT, b"x", STALE)]),
    "error of a commit alone, allowed": ("ok", 2, [(1, COMMIT, b"x", STALE)]),
    "size": ("fail", 2, [*run(2), (3, APPEND, LARGE, None), *steps((3, PING), (4, PING))]),
    "size of a commit": ("fail", 2, [*run(2), (3, COMMIT, LARGE, None), *steps((3, PING))]),
    "size, allowed": (
        "ok",
        2,
        [*run(2), (3, APPEND, LARGE, None), *steps((3, PING), (4, APPEND), (5, END))],
    ),
    "size of a commit, allowed": (
        "ok",
        2,
        [*run(2), (3, COMMIT, LARGE, None), *steps((3, PING), (4, END))],
    ),
    "unknown": ("fail", 2, steps((1, PING), (5, PING), (5, APPEND), (5, COMMIT), (5, END))),
    "unknown, allowed": ("ok", 2, steps((1, PING), (5, PING), (5, APPEND), (5, END), (1, START))),
    "known": (
        "fail",
        2,
        [(1, START, b"x", A), (2, APPEND, b"x", A), (3, APPEND, b"x", A), (4, APPEND, b"x", B)]
        + steps((5, END)),
    ),
    "a known commit": ("fail", 2, [(1, START, b"x", A), (2, COMMIT, b"x", A)]),
    "the end again": ("fail", 2, [*run(2), *steps((3, END), (3, END))]),
    "a ping": ("fail", 2, [*run(3), *steps((3, PING), (1, PING))]),
    "a number again": ("fail", 2, [*run(2), *steps((2, APPEND), (3, APPEND))]),
    "a number again, allowed": ("ok", 2, [*run(2), *steps((2, APPEND), (3, APPEND))]),
    "no flow": ("fail", 0, run(12)),
    "a great flow": ("fail", 70000, run(3)),
    "a flow of one": ("fail", 1, [*run(3), (4, END, b"", None)]),
}


def random_dialogue(seed):
    """Return frames of one or two clients, with holes, rejections and repetitions."""
    rng = random.Random(seed)
    mode = rng.choice(("fail", "ok"))
    flow = rng.randrange(1, 5)
    found = []
    numbers = {"a": 0, "b": 0}
    for _ in range(rng.randrange(4, 16)):
        name = rng.choice("aaab") if seed % 2 else "a"
        kind = rng.random()
        if numbers[name] and kind < 0.12:
            found.append((name, numbers[name] + rng.choice((0, 0, 1)), PING, b"", None))
            continue
        numbers[name] += 1 if kind < 0.9 or numbers[name] < 1 else rng.choice((0, 2, 3))
        number = numbers[name]
        operation = START if number == 1 else rng.choice((APPEND,) * 12 + (COMMIT, END))
        block = rng.choice([None] * 6 + [STALE, A, B, C])
        data = LARGE if rng.random() < 0.06 else b"%d" % len(found)
        if operation == END:
            data, block = b"", None
        found.append((name, number, operation, data, block))
    return mode, flow, found


def orders():
    for name, (mode, flow, places) in DIALOGUES.items():
        yield name, mode, flow, [("a", *place) for place in places]
    for seed in range(SEEDS):
        yield (f"dialogue {seed}", *random_dialogue(seed))


def play_model(mode, flow, places, stream):
    """Return the responses and the stored messages."""
    model = FastModel(Clock(), stream, max_size=MAX_SIZE)
    sent = []
    peer = Peer(model, sent.append)
    peer.receive(b"SUB i.> 1\r\n")
    for batch, number, operation, data, headers in places:
        reply = f"i.{batch}.{flow or 10}.{mode}.{number}.{operation}.$FI"
        model.take(Message(reply.encode(), block_of(headers), data))
    answers = [frame for frame in Parser().feed(b"".join(sent)) if isinstance(frame, Msg)]
    return [place(msg) for msg in answers], [message.data for message in model.stored]


def block_of(headers):
    lines = "".join(f"{key}: {value}\r\n" for key, value in (headers or {}).items())
    return f"NATS/1.0\r\n{lines}\r\n".encode() if lines else None


def place(msg):
    """Return the request and its response, without the requested flow."""
    words = msg.subject.split(".")
    return ".".join([words[-6], *words[-4:]]), msg.data.decode()


def play_server(client, js, mode, flow, places, stream):
    subject = stream.lower()
    config = {"allow_batched": True, "max_msg_size": MAX_SIZE, "storage": "memory"}
    made = js.create_stream(name=stream, subjects=[subject], allow_direct=True, **config)
    inbox = f"_INBOX.{stream}"
    sub = client.subscribe(inbox + ".>")
    for batch, number, operation, data, headers in places:
        reply = f"{inbox}.{batch}.{flow}.{mode}.{number}.{operation}.$FI"
        client.publish(subject, data, reply=reply, headers=headers)
    client.publish(subject, b"last", reply=inbox + ".last")  # its answer is the last one
    answers = []
    while True:
        msg = sub.next(5.0)
        if msg.subject.endswith(".last"):
            break
        answers.append(place(msg))
    sub.unsubscribe()
    stored = [msg.data for msg in made.get_msgs(batch=100)]
    js.delete_stream(stream)
    return answers, stored[:-1]


def test_dialogues():
    with Server(jetstream=True) as server:
        if server.version < SINCE:
            pytest.skip("the model answers as 2.15.1 does")
        with connect(server.url) as client:
            js = JetStream(client)
            for number, (name, mode, flow, places) in enumerate(orders()):
                stream = f"S{number}"
                real = play_server(client, js, mode, flow, places, stream)
                assert play_model(mode, flow, places, stream) == real, (name, mode, flow, places)


LEADERS = [
    # mode, before; another leads and tells; then; what three servers of 2.15.1 answered
    (
        "ok",
        [*run(2), (3, APPEND, b"x", STALE)],
        steps((4, APPEND), (4, PING), (5, END)),
        [
            ("a.ok.1.0.$FI", '{"type":"ack","seq":0,"msgs":4}'),
            (
                "a.ok.3.1.$FI",
                '{"type":"err","seq":3,"error":{"code":400,"err_code":10071,'
                '"description":"wrong last sequence: 2"}}',
            ),
            ("a.ok.2.1.$FI", '{"type":"ack","seq":2,"msgs":4}'),
            ("a.ok.4.1.$FI", '{"type":"gap","last_seq":3,"seq":4}'),
            ("a.ok.4.4.$FI", '{"type":"ack","seq":2,"msgs":4}'),
            ("a.ok.5.3.$FI", '{"stream":"S","seq":3,"batch":"a","count":4}'),
        ],
    ),
    (
        "fail",
        [*run(2), (3, APPEND, b"x", A), (4, APPEND, b"x", A)],
        steps((5, APPEND)),
        [
            ("a.fail.1.0.$FI", '{"type":"ack","seq":0,"msgs":4}'),
            ("a.fail.3.1.$FI", '{"type":"ack","seq":4,"msgs":4}'),
            ("a.fail.3.1.$FI", '{"type":"ack","seq":3,"msgs":4}'),
            ("a.fail.5.1.$FI", '{"type":"gap","last_seq":4,"seq":5}'),
            ("a.fail.5.1.$FI", '{"stream":"S","seq":3,"batch":"a","count":3}'),
        ],
    ),
]


@pytest.mark.parametrize(("mode", "before", "then", "answers"), LEADERS)
def test_another_leader(mode, before, then, answers):
    """It knows only the last stored message: rejected and duplicate messages are a gap."""
    clock = Clock()
    model = FastModel(clock, replicated=True, delay=0.01)
    sent = []
    peer = Peer(model, sent.append)
    peer.receive(b"SUB i.> 1\r\n")
    for index, places in enumerate((before, then)):
        for number, operation, data, headers in places:
            reply = f"i.a.4.{mode}.{number}.{operation}.$FI"
            model.take(Message(reply.encode(), block_of(headers), data))
            clock.run_until(clock.now + (0.0 if index == 0 else 0.1))
        clock.run_until(clock.now + 1.0)
        if index == 0:
            model.step_down(0, silent=False)
            model.elect()
    found = [frame for frame in Parser().feed(b"".join(sent)) if isinstance(frame, Msg)]
    assert [place(msg) for msg in found] == answers
