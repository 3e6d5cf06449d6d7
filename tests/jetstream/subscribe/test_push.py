"""The workflow, on a client whose server is a list of answers."""

from __future__ import annotations

import pytest

from jetstream import JetStream, errors
from jetstream.events import Gap, PushWarning
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidSubject,
    NotSupported,
    TimeoutExpired,
)
from tests.jetstream.subscribes import (
    ABSENT,
    DENIED,
    DONE,
    EXISTS,
    NAME,
    NO_STREAM,
    TOKEN,
    Cancelled,
    Listener,
    begin,
    consumer,
    left,
    streams,
)
from tests.jetstream.support import NOBODY, SILENCE

INBOX = "_INBOX." + "2" * 22
FIRST = "_INBOX." + "1" * 22

WAYS = [  # the requested options; the answers; what is sent
    (
        *("ephemeral", {}, [streams("S"), consumer()]),
        ["STREAM.NAMES", f"SUB {INBOX}", f"CONSUMER.CREATE.S.{NAME}.s.a"],
    ),
    (
        *("stream given", {"stream": "S"}, [consumer()]),
        [f"SUB {FIRST}", f"CONSUMER.CREATE.S.{TOKEN}.s.a"],
    ),
    (
        *("the whole stream", {"stream": "S", "subject": ""}, [consumer()]),
        [f"SUB {FIRST}", f"CONSUMER.CREATE.S.{TOKEN}"],
    ),
    (
        *("durable, new", {"stream": "S", "durable": "c"}, [ABSENT, consumer()]),
        ["CONSUMER.INFO.S.c", f"SUB {FIRST}", "CONSUMER.CREATE.S.c.s.a"],
    ),
    (
        "durable, found",
        {"stream": "S", "durable": "c"},
        [consumer(durable_name="c", deliver_subject="d")],
        ["CONSUMER.INFO.S.c", "SUB d"],
    ),
    (
        "named, found",
        {"stream": "S", "name": "c"},
        [consumer(deliver_subject="d")],
        ["CONSUMER.INFO.S.c", "SUB d"],
    ),
    (
        "bound",
        {"stream": "S", "durable": "c", "bind": True},
        [consumer(deliver_subject="d")],
        ["CONSUMER.INFO.S.c", "SUB d"],
    ),
    (
        *("queue, new", {"stream": "S", "queue": "q"}, [ABSENT, consumer("q")]),
        ["CONSUMER.INFO.S.q", f"SUB {FIRST} q", "CONSUMER.CREATE.S.q.s.a"],
    ),
    (
        "queue, found",
        {"stream": "S", "queue": "q", "durable": "c"},
        [consumer(durable_name="c", deliver_subject="d", deliver_group="q", bound=True)],
        ["CONSUMER.INFO.S.c", "SUB d q"],
    ),
    (
        "its own subject",
        {"stream": "S", "deliver_subject": "to.me"},
        [consumer()],
        ["SUB to.me", f"CONSUMER.CREATE.S.{TOKEN}.s.a"],
    ),
    (
        "a race, lost",
        {"stream": "S", "queue": "q"},
        [ABSENT, EXISTS, consumer("q", deliver_subject="d", deliver_group="q", bound=True)],
        [
            *("CONSUMER.INFO.S.q", f"SUB {FIRST} q", "CONSUMER.CREATE.S.q.s.a", "UNSUB"),
            *("CONSUMER.INFO.S.q", "SUB d q"),
        ],
    ),
]


@pytest.mark.rule("JSSUB-1", "JSSUB-2", "JSSUB-3", "JSSUB-6", "JSSUB-7", "JSSUB-10")
@pytest.mark.parametrize(("name", "asked", "answers", "sent"), WAYS)
def test_find_or_create_the_consumer(name, asked, answers, sent):
    stage, messages, log = begin(*answers, **asked)
    assert not isinstance(messages, Exception), messages
    assert log == sent
    target = sent[-1].split()[1] if sent[-1].startswith("SUB") else sent[-2].split()[1]
    stage.deliver(target, 1)
    assert stage.run(messages.next()).metadata.consumer_seq == 1
    paths = [line.split(".") for line in log if line.startswith("CONSUMER")]
    assert (messages.stream, messages.name) == tuple(paths[-1][2:4])


@pytest.mark.rule("JSSUB-2", "JSSUB-7", "JSSUB-15")
def test_configuration_of_a_new_consumer():
    stage, _, _ = begin(
        *(ABSENT, consumer("q")), stream="S", queue="q", ack_wait=2.0, config={"max_deliver": 3}
    )
    [_, (_, body)] = stage.asked
    assert body == {
        "stream_name": "S",
        "action": "create",
        "config": {
            "durable_name": "q",
            "name": "q",
            "ack_policy": "explicit",
            "ack_wait": 2_000_000_000,
            "max_deliver": 3,
            "filter_subject": "s.a",
            "deliver_subject": FIRST,
            "deliver_group": "q",
        },
    }


PUSH = consumer(deliver_subject="d")
ERRORS = [  # the requested options; the answers; the error, what was sent
    ({}, [streams()], "StreamNotFound", ["STREAM.NAMES"]),
    ({}, [streams("A", "B")], "AmbiguousStream", ["STREAM.NAMES"]),
    ({"stream": "S", "durable": "c"}, [NO_STREAM], "StreamNotFound", ["CONSUMER.INFO.S.c"]),
    ({"stream": "S", "durable": "c"}, [DENIED], "TemporarilyUnavailable", ["CONSUMER.INFO.S.c"]),
    ({"stream": "S", "durable": "c"}, [NOBODY], "JetStreamNotAvailable", ["CONSUMER.INFO.S.c"]),
    ({"stream": "S", "durable": "c"}, [SILENCE], "TimeoutExpired", ["CONSUMER.INFO.S.c"]),
    (
        {"stream": "S", "durable": "c", "bind": True},
        *([ABSENT], "ConsumerNotFound", ["CONSUMER.INFO.S.c"]),
    ),
    (
        {"stream": "S", "durable": "c", "bind": True},
        *([consumer()], "PushOfPullConsumer", ["CONSUMER.INFO.S.c"]),
    ),
    (
        {"stream": "S", "name": "c", "ack_wait": 3.0},
        *([PUSH], "ConfigMismatch", ["CONSUMER.INFO.S.c"]),
    ),
    (
        {"stream": "S"},
        [DENIED],
        "TemporarilyUnavailable",
        [f"SUB {FIRST}", f"CONSUMER.CREATE.S.{TOKEN}.s.a", "UNSUB"],
    ),
    (
        {"stream": "S"},
        [EXISTS],
        "ConsumerExists",
        [f"SUB {FIRST}", f"CONSUMER.CREATE.S.{TOKEN}.s.a", "UNSUB"],
    ),
    (
        {"stream": "S", "durable": "c"},
        [ABSENT, EXISTS, consumer(durable_name="c", deliver_subject="d", bound=True)],
        "DuplicateSubscription",
        [
            *("CONSUMER.INFO.S.c", f"SUB {FIRST}", "CONSUMER.CREATE.S.c.s.a", "UNSUB"),
            "CONSUMER.INFO.S.c",
        ],
    ),
    (
        {"stream": "S", "durable": "c"},
        [ABSENT, EXISTS, ABSENT],
        "ConsumerNotFound",
        [
            *("CONSUMER.INFO.S.c", f"SUB {FIRST}", "CONSUMER.CREATE.S.c.s.a", "UNSUB"),
            "CONSUMER.INFO.S.c",
        ],
    ),
]


@pytest.mark.rule("JSSUB-1", "JSSUB-3", "JSSUB-10", "D-JSSUB-12")
@pytest.mark.parametrize(("asked", "answers", "name", "sent"), ERRORS)
def test_errors_leave_no_subscription_or_consumer(asked, answers, name, sent):
    stage, error, log = begin(*answers, **asked)
    assert (type(error).__name__, log) == (name, sent)
    assert left(stage) == []


@pytest.mark.rule("JSSUB-1")
def test_invalid_options_are_rejected_before_anything_is_sent():
    stage, error, log = begin(subject="a b")
    assert isinstance(error, InvalidSubject)
    assert log == []
    assert stage.quiet()


OURS = consumer(TOKEN, deliver_subject=FIRST)
CREATED = [f"SUB {FIRST}", f"CONSUMER.CREATE.S.{TOKEN}.s.a", "UNSUB"]


@pytest.mark.rule("D-JSSUB-12")
def test_no_answer_to_the_create_request():
    stage, error, log = begin(SILENCE, OURS, DONE, stream="S")
    assert isinstance(error, TimeoutExpired)
    path = f"S.{TOKEN}"
    inbox = log[3]
    assert inbox.startswith("SUB _INBOX.")
    cleanup = [f"CONSUMER.INFO.{path}", f"CONSUMER.DELETE.{path}", "UNSUB"]
    assert [*log[:3], *log[4:]] == CREATED + cleanup
    assert left(stage) == []


@pytest.mark.rule("D-JSSUB-12")
def test_a_call_that_is_canceled():
    stage = Listener(SILENCE, OURS, DONE)
    stage.cancel_at = 1
    with pytest.raises(Cancelled):
        stage.run(JetStream(stage.client).subscribe("s.a", stream="S"))
    stage.settle()
    assert left(stage) == []
    assert stage.log[:3] == CREATED
    assert stage.log[-2] == f"CONSUMER.DELETE.S.{TOKEN}"
    assert stage.answers == []


@pytest.mark.rule("D-JSSUB-12")
def test_filters_that_the_server_ignores():
    stage, error, log = begin(consumer(), OURS, DONE, stream="S", filter_subjects=["s.a", "s.b"])
    assert isinstance(error, errors.FilterIgnored)
    assert log[-3] == f"CONSUMER.INFO.S.{TOKEN}"
    assert log[-2] == f"CONSUMER.DELETE.S.{TOKEN}"
    assert left(stage) == []


@pytest.mark.rule("D-JSSUB-12")
def test_the_client_is_closed_in_the_meantime():
    stage = Listener(SILENCE)
    stage.wire.connection.options.max_reconnects = 0
    call = JetStream(stage.client).subscribe("s.a", stream="S")

    async def wait(waitable):
        stage.wire.tell("close")

    stage.wait = wait
    with pytest.raises(ConnectionClosed):
        stage.run(call)
    assert stage.connection.subscriptions.receivers() == []


DELETION = [  # the requested options; the answers; whether the consumer is deleted
    ("its own", {}, [OURS], True),
    ("not wanted", {"delete_on_end": False}, [OURS], False),
    ("named", {"name": "c"}, [ABSENT, consumer()], True),
    ("durable", {"durable": "c"}, [ABSENT, consumer()], False),
    ("durable, wanted", {"durable": "c", "delete_on_end": True}, [ABSENT, consumer()], True),
    ("queue", {"queue": "c"}, [ABSENT, consumer()], False),
    ("queue, wanted", {"queue": "c", "delete_on_end": True}, [ABSENT, consumer()], True),
    ("found", {"name": "c"}, [PUSH], False),
    ("found, wanted", {"name": "c", "delete_on_end": True}, [PUSH], False),
    ("bound, wanted", {"name": "c", "bind": True, "delete_on_end": True}, [PUSH], False),
    (
        *("a race, lost", {"name": "c", "delete_on_end": True}),
        *([ABSENT, EXISTS, PUSH], False),
    ),
]


@pytest.mark.rule("JSSUB-11")
@pytest.mark.parametrize("end", ["unsubscribe", "drain", "iteration"])
@pytest.mark.parametrize(("name", "asked", "answers", "deletes"), DELETION)
def test_whether_the_consumer_is_deleted(name, asked, answers, deletes, end):
    stage, messages, log = begin(*answers, stream="S", **asked)
    target = [line.split()[1] for line in log if line.startswith("SUB")][-1]
    if deletes:
        stage.answers.append(DONE)
    if end == "iteration":
        stage.deliver(target, 1)
    stage.run(messages.unsubscribe() if end == "unsubscribe" else messages.drain())
    if end == "iteration":
        stage.serve()
        assert "CONSUMER.DELETE" not in "".join(stage.log)  # not before the last one is taken
        stage.run(messages.next())
        with pytest.raises(InvalidState):
            stage.run(messages.next())
    stage.serve()
    deleted = [line for line in stage.log if line.startswith("CONSUMER.DELETE")]
    assert len(deleted) == deletes
    assert stage.answers == []
    assert stage.log[0] == "UNSUB"
    assert messages.closed


@pytest.mark.rule("JSSUB-11")
@pytest.mark.parametrize(
    ("answer", "events"),
    [
        (ABSENT, []),
        (NO_STREAM, []),
        (DENIED, ["TemporarilyUnavailable"]),
        (SILENCE, ["TimeoutExpired"]),
    ],
)
def test_a_failed_deletion_is_reported(answer, events):
    stage, messages, _ = begin(OURS, stream="S")
    stage.answers.append(answer)
    stage.run(messages.unsubscribe())
    reported = []
    while len(reported) < len(events):
        event = stage.run(messages.events.next())
        assert isinstance(event, PushWarning)
        reported.append(type(event.error).__name__)
    assert reported == events


@pytest.mark.rule("JSSUB-9")
@pytest.mark.parametrize(
    ("asked", "answers", "first", "gaps"),
    [
        ({}, [OURS], 1, []),
        ({}, [OURS], 3, [Gap(1, 2)]),
        ({"name": "c"}, [consumer(deliver_subject="d", delivered=7)], 8, []),
        ({"name": "c"}, [consumer(deliver_subject="d", delivered=7)], 10, [Gap(8, 9)]),
        (
            {"queue": "q", "name": "c"},
            [consumer(deliver_subject="d", deliver_group="q", delivered=7)],
            *(10, []),
        ),
    ],
)
def test_where_gaps_are_counted_from(asked, answers, first, gaps):
    stage, messages, _ = begin(*answers, stream="S", **asked)
    target = "d" if asked else FIRST
    stage.deliver(target, first)
    stage.run(messages.next())
    reported = []
    while messages._machine.events.items:
        reported.append(stage.run(messages.events.next()))
    assert reported == gaps


@pytest.mark.rule("JSSUB-13", "JSSUB-15")
def test_heartbeats_follow_the_consumer():
    found = consumer(deliver_subject="d", idle_heartbeat=1_000_000_000)
    stage, messages, _ = begin(found, stream="S", name="c", alarm_after=2.0)
    begun = stage.now()
    event = stage.run(messages.events.next())
    assert isinstance(event.error, errors.HeartbeatMissed)
    assert stage.now() - begun == 2.0
    stage, messages, _ = begin(OURS, stream="S")
    assert messages._machine.deadline is None


@pytest.mark.rule("JSSUB-15")
def test_messages_without_acknowledgment():
    stage, messages, _ = begin(OURS, stream="S", ack_policy="none")
    stage.deliver(FIRST, 1)
    assert stage.run(messages.next()).settled


@pytest.mark.rule("JSSUB-1", "JSSUB-14")
@pytest.mark.parametrize("stream", ["", "S"])
def test_an_ordered_subscription(stream):
    answers = [consumer(deliver_subject="d")] if stream else [streams("S"), consumer()]
    _, messages, log = begin(*answers, ordered=True, stream=stream, deliver_policy="new")
    assert not isinstance(messages, Exception), messages
    created = [line for line in log if line.startswith("CONSUMER.CREATE.S.")]
    assert len(created) == 1
    assert created[0].endswith(".s.a")
    assert (log[0] == "STREAM.NAMES") is (not stream)


@pytest.mark.rule("JSSUB-14")
def test_an_ordered_subscription_on_an_old_server():
    stage = Listener(version="2.9.10")
    js = JetStream(stage.client)
    with pytest.raises(NotSupported, match=r"filter_subjects needs server 2\.10"):
        stage.run(js.subscribe(stream="S", ordered=True, filter_subjects=["a", "b"]))
    assert stage.quiet()


@pytest.mark.rule("JSSUB-2")
def test_without_a_connection_the_subscription_waits():
    stage, messages, _ = begin(PUSH, stream="S", name="c")
    assert messages._machine._online
    stage = Listener(PUSH)
    js = JetStream(stage.client)
    look = js._streams.consumer

    async def lose_it(*args):
        found = await look(*args)
        stage.wire.lost()
        stage.forget_transport()
        return found

    js._streams.consumer = lose_it
    js._streams.bounded = lambda: js._streams
    messages = stage.run(js.subscribe(stream="S", name="c"))
    assert not messages._machine._online
    stage.wire.greet(jetstream=True).data(b"PONG\r\n")
    assert messages._machine._online


@pytest.mark.rule("D-CONSUME-30")
@pytest.mark.parametrize("nak", [False, True])
@pytest.mark.parametrize("answers", [[ABSENT, consumer()], [consumer(deliver_subject="d")]])
def test_nak_on_exit(answers, nak):
    _, messages, _ = begin(*answers, stream="S", name="c", nak_on_exit=nak)
    assert messages.nak_on_exit is nak
