"""delivery=atomic against a real server, without Spark: batches, their markers, and zombies."""

from __future__ import annotations

import pytest

from jetstream.blocking import JetStream
from jetstream.errors import InvalidResponse
from jetstream.spark.atomic import AtomicWriter, Task, WriterFenced
from jetstream.spark.connect import forget
from jetstream.spark.encoder import Encoder
from jetstream.spark.options import WRITE, read_options
from jetstream.spark.sending import WriteFailed
from natsproto.adapters.blocking import connect
from natsproto.errors import TimeoutExpired
from natsproto.testing import Server
from tests.spark.sinks import in_order, make_batch, seen


@pytest.fixture
def settings(atomic):
    return read_options(atomic, WRITE)


class Attempt(AtomicWriter):
    """An attempt at the one task of a write."""

    def __init__(self, settings, write=0, query="q"):
        super().__init__(settings, Task(settings.text("markerSubject") + ".w.0", query, write))
        self.settings = settings
        self.skipped = self.take_over()

    def put(self, batch):
        batch_id = self.new_id()
        self.write(batch_id, Encoder(self.settings, "").encode(batch, batch_id))

    def pass_over(self, batch):
        self.skip(Encoder(self.settings, "").encode(batch, self.new_id()))


class Deaf(Attempt):
    """It does not receive the acknowledgment of its first batch."""

    deaf = True

    async def _store(self, batch_id, pieces, marker):
        seq = await super()._store(batch_id, pieces, marker)
        if self.deaf:
            self.deaf = False
            raise TimeoutExpired("no response")
        return seq


class Mute(Attempt):
    """Its first batch is lost before the server."""

    mute = True

    async def _store(self, batch_id, pieces, marker):
        if self.mute:
            self.mute = False
            pieces = pieces[:1]
            await self._check_begin(self._request(*pieces[0]))
            raise TimeoutExpired("no response")
        return await super()._store(batch_id, pieces, marker)


def test_batches_and_their_markers(js, name, make, settings):
    make(allow_atomic=True)
    attempt = Attempt(settings)
    assert attempt.skipped == 0
    attempt.put(make_batch(0, 999))
    attempt.put(make_batch(999, 1000))
    assert seen(attempt.tally) == (1000, 0, {name: (2, 1002)})
    assert in_order(js.stream(name)) == list(range(1000))
    assert js.stream(name).info().state.messages == 1003


def test_the_next_attempt_skips_stored_rows(js, name, make, settings):
    make(allow_atomic=True)
    Attempt(settings).put(make_batch(0, 600))
    attempt = Attempt(settings)
    assert attempt.skipped == 600
    for start, end in [(0, 1), (1, 400), (400, 600)]:  # in whatever pieces Spark has them
        attempt.pass_over(make_batch(start, end))
    attempt.put(make_batch(600, 1000))
    attempt.finish()
    another = Attempt(settings)
    assert another.skipped == 1000
    another.pass_over(make_batch(0, 1000))
    another.finish()
    assert Attempt(settings, 1).skipped == 0
    assert in_order(js.stream(name)) == list(range(1000))


def test_a_zombie_is_fenced(js, name, make, settings):
    make(allow_atomic=True)
    zombie = Attempt(settings)
    zombie.put(make_batch(0, 10))
    attempt = Attempt(settings)
    with pytest.raises(WriterFenced, match="another attempt has taken over"):
        zombie.put(make_batch(10, 20))
    attempt.put(make_batch(10, 20))
    with pytest.raises(WriterFenced):
        zombie.put(make_batch(20, 30))
    assert in_order(js.stream(name)) == list(range(20))


def test_a_zombie_of_an_old_micro_batch_is_fenced(js, name, make, settings):
    make(allow_atomic=True)
    old = Attempt(settings, 4)
    Attempt(settings, 5).put(make_batch(0, 10))
    with pytest.raises(WriterFenced, match="a later micro-batch has taken over"):
        old.put(make_batch(0, 10))
    with pytest.raises(WriterFenced, match="a later micro-batch has taken over"):
        Attempt(settings, 4)
    assert in_order(js.stream(name)) == list(range(10))


def test_atomic_needs_no_duplicate_window(js, name, make, settings):
    make(allow_atomic=True, duplicate_window=0.1)
    Attempt(settings).put(make_batch(0, 10))
    js.publish(f"{name}.b", b"100", msg_id="known")
    while js.publish(f"{name}.b", b"100", msg_id="known").duplicate:
        pass  # until the stream has forgotten the id
    attempt = Attempt(settings)
    assert attempt.skipped == 10
    numbers = in_order(js.stream(name))
    assert numbers == [*range(10), 100, 100]


@pytest.mark.parametrize("kind", [Deaf, Mute])
def test_a_batch_in_doubt(js, name, make, settings, kind):
    make(allow_atomic=True)
    attempt = kind(settings)
    attempt.put(make_batch(0, 500))
    attempt.put(make_batch(500, 1000))
    assert attempt.tally.rows == 1000
    assert in_order(js.stream(name)) == list(range(1000))


class Patient(Attempt):
    """While it waits to retry, other batches finish."""

    others = ()

    def _rest(self, turn):
        self.others.pop().commit(f"{self.settings.list('stream')[0]}.b", b"1")


def test_the_server_accepts_fifty_concurrent_batches(js, name, make, settings):
    make(allow_atomic=True)
    attempt = Patient(settings)
    attempt.others = [js.atomic_batch() for _ in range(50)]
    for other in attempt.others:
        other.add(f"{name}.b", b"0")
    attempt.put(make_batch(2, 10))
    assert len(attempt.others) == 49
    assert in_order(js.stream(name)) == [0, 1, *range(2, 10)]


def test_atomic_on_a_server_that_restarts(name):
    with Server(jetstream=True) as server, connect(server.url) as other:
        js = JetStream(other)
        js.create_stream(name=name, subjects=[f"{name}.>"], allow_direct=True, allow_atomic=True)
        texts = {"servers": server.url, "subject": f"{name}.a", "stream": name}
        settings = read_options(
            {**texts, "delivery": "atomic", "markerSubject": f"{name}.mark"}, WRITE
        )
        attempt = Attempt(settings)
        for number in range(0, 3000, 500):
            if number == 1000:
                server.kill()
                server.restart()
            attempt.put(make_batch(number, number + 500))
        with connect(server.url) as another:
            numbers = in_order(JetStream(another).stream(name))
        forget(settings)
    assert numbers == list(range(3000))


ATOMIC_REFUSED = [
    ("a stream without batches", {}, make_batch(0, 3), "BatchRefused: "),
    (
        "a row expects another sequence",
        {"allow_atomic": True},
        make_batch(0, 3, expected_last_subject_sequence=lambda number: 7),
        "WrongLastSequence: wrong last sequence",
    ),
    (
        "full",
        {"allow_atomic": True, "max_msgs": 10, "discard": "new"},
        make_batch(0, 20),
        "StoreFailed: maximum messages exceeded",
    ),
]


@pytest.mark.parametrize(
    ("config", "batch", "why"),
    [each[1:] for each in ATOMIC_REFUSED],
    ids=[each[0] for each in ATOMIC_REFUSED],
)
def test_a_rejected_batch_stores_nothing(js, name, make, settings, config, batch, why):
    make(**config)
    attempt = Attempt(settings)
    with pytest.raises(WriteFailed) as caught:
        attempt.put(batch)
    assert why in str(caught.value)
    assert in_order(js.stream(name)) == []


def test_a_foreign_message_on_a_marker_subject(js, name, make, settings):
    make(allow_atomic=True)
    js.publish(f"{name}.mark.w.0", b"hello")
    with pytest.raises(InvalidResponse, match="message 1 on a marker subject is not a marker"):
        Attempt(settings)
