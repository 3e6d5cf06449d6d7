"""A JetStream in memory, with as much of it as consumer groups use, and a clock of its own.

It has buckets, streams, and consumers with priority groups and a max_ack_pending of 1. A stream
holds (sequence, subject, data) until they are acknowledged. `delay` makes reads of a bucket return
the value before the last one.
"""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace

from jetstream.config import StreamConfig
from jetstream.errors import (
    ConsumerDeleted,
    ConsumerExists,
    ConsumerNotFound,
    MessageNotFound,
    StreamNotFound,
    WorkQueueConflict,
    WrongLastSequence,
)
from jetstream.errors.kv import BucketExists, BucketNotFound, KeyExists, KeyNotFound
from natsproto.errors import InvalidState, TimeoutExpired
from natsproto.wire.frames import Msg
from natsproto.wire.subjects import matches

TIME = "2026-11-17T18:02:39Z"


class Stored:
    """A consumer on the server."""

    def __init__(self, config):
        self.config = config
        self.pending = {}  # sequence -> when it is delivered again
        self.done = set()  # sequences, on streams that keep them
        self.pin = None  # the instance that is pinned
        self.pins = 0
        self.used = 0.0


class Server:
    def __init__(self):
        self.now = 1000.0
        self.buckets = {}
        self.streams = {}
        self.held = {}  # stream -> messages
        self.consumers = {}
        self.feeds = []  # (subject, feed)
        self.later = []  # called one by one when a caller waits
        self.fail = {}  # call -> error, once
        self.sequence = 0
        self.calls = []

    def add_stream(self, name, **config):
        self.streams[name] = StreamConfig(name=name, **config)
        self.held[name] = []

    def publish(self, stream, subject, data):
        self.sequence += 1
        self.held[stream].append((self.sequence, subject, data))

    def call(self, name):
        self.calls.append(name)
        if name in self.fail:
            raise self.fail.pop(name)

    def write(self, bucket, key, value):
        self.sequence += 1
        self.buckets[bucket][key] = (value, self.sequence)
        for subject, feed in list(self.feeds):
            if subject == f"$KV.{bucket}.{key}":
                feed.receive(None, self.now)
        return self.sequence

    def expire(self):
        """Remove consumers that were not used for their inactive threshold."""
        for key, each in list(self.consumers.items()):
            limit = each.config.inactive_threshold
            if limit and self.now >= each.used + limit:
                del self.consumers[key]

    def deliver(self, key, instance):
        """Return the next message for this instance; None if there is none."""
        self.expire()
        consumer = self.consumers.get(key)
        if consumer is None:
            raise ConsumerDeleted(409, "Consumer Deleted")
        timeout = consumer.config.priority_timeout
        if consumer.pin is not instance:
            if consumer.pin is not None and self.now < consumer.used + timeout:
                return None
            consumer.pin = instance
            consumer.pins += 1
        consumer.used = self.now
        held = self.held[key[0]]
        limit = consumer.config.max_ack_pending
        again = [seq for seq, due in consumer.pending.items() if due <= self.now]
        for seq, subject, data in held:
            fresh = seq not in consumer.pending and seq not in consumer.done
            wanted = any(matches(each, subject) for each in consumer.config.filter_subjects)
            if wanted and (seq in again or (fresh and len(consumer.pending) < limit)):
                consumer.pending[seq] = self.now + consumer.config.ack_wait
                reply = f"$JS.ACK.{key[0]}.{key[1]}.1.{seq}.{seq}.1.0".encode()
                return Msg(subject.encode(), 1, reply, data)
        return None

    def ack(self, stream, name, seq):
        consumer = self.consumers.get((stream, name))
        if consumer is None:
            return  # it was deleted: the message is delivered again
        if consumer.pending.pop(seq, None) is not None:
            consumer.done.add(seq)
            if self.streams[stream].retention == "workqueue":
                self.held[stream] = [row for row in self.held[stream] if row[0] != seq]


class Bucket:
    def __init__(self, server, name):
        self.server, self.name = server, name
        self.rows = server.buckets[name]

    async def get(self, key):
        value, revision = self.rows.get(key, (None, 0))
        if value is None:
            raise KeyNotFound(self.name, key)
        return SimpleNamespace(value=value, revision=revision)

    async def create(self, key, value):
        if self.rows.get(key, (None, 0))[0] is not None:
            raise KeyExists(self.name, key, WrongLastSequence(400, 10071, "wrong last sequence"))
        return self.server.write(self.name, key, value)

    async def update(self, key, value, last):
        assert self.rows[key][1] == last
        return self.server.write(self.name, key, value)

    async def put(self, key, value):
        return self.server.write(self.name, key, value)

    async def delete(self, key):
        self.server.write(self.name, key, None)

    async def keys(self, pattern):
        return [key for key, (value, _) in self.rows.items() if value and matches(pattern, key)]


class Source:
    """The machine of a consume()."""

    def __init__(self):
        self.pin = ""
        self.error = None


class Messages:
    """A consume() of one instance."""

    def __init__(self, server, key):
        self.server, self.key = server, key
        self._consume = self.source = Source()
        self.stopped = self.closed = False
        self.buffer = []

    @property
    def pending(self):
        return len(self.buffer)

    def pull(self):
        if self.stopped or self.buffer or self.closed or self.source.error:
            return
        try:
            msg = self.server.deliver(self.key, self)
        except ConsumerDeleted as error:
            self.source.error = error
            return
        if msg is not None:
            self.buffer.append(msg)
            consumer = self.server.consumers[self.key]
            self.source.pin = f"pin{consumer.pins}"

    def poll(self):
        self.pull()
        return None

    async def next(self, timeout):
        if self.buffer:
            msg = self.buffer.pop(0)
            return SimpleNamespace(_msg=msg, _session=self.server, settled=False)
        if self.source.error:
            raise self.source.error
        raise InvalidState("it has ended")

    async def stop(self, nak=False):
        self.stopped = True
        consumer = self.server.consumers.get(self.key)
        if nak and consumer is not None:
            for msg in self.buffer:
                consumer.pending[int(msg.reply.split(".")[5])] = self.server.now
        return list(self.buffer)


class Consumer:
    def __init__(self, server, key):
        self.server, self.key = server, key
        self.options = {}

    @property
    def cached_info(self):
        stored = self.server.consumers[self.key]
        row = SimpleNamespace(group="PCG", pinned_client_id=f"pin{stored.pins}")
        return SimpleNamespace(
            name=self.key[1],
            num_waiting=int(stored.pin is not None),
            num_ack_pending=len(stored.pending),
            priority_groups=[row] if stored.pins else [],
            config=stored.config,
        )

    def consume(self, **options):
        self.server.last_options = options
        return Messages(self.server, self.key)


class Api:
    """An ApiClient that reads configurations."""

    def __init__(self, server):
        self.server = server
        self.session = Session(server)

    async def call(self, endpoint, body, deadline=None):
        self.server.call("read")
        verb, _, stream = endpoint.rpartition(".")
        assert verb == "STREAM.MSG.GET"
        bucket = self.server.buckets.get(stream[3:])
        if bucket is None:
            raise StreamNotFound(404, 10059, "stream not found")
        key = body["last_by_subj"].split(".", 2)[2]
        if key not in bucket:
            raise MessageNotFound(404, 10037, "no message found")
        value, revision = bucket[key]
        message = {"subject": body["last_by_subj"], "seq": revision, "time": TIME}
        if value is None:
            block = b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"
            message["hdrs"] = base64.b64encode(block).decode()
        else:
            message["data"] = base64.b64encode(value).decode()
        return {"message": message}


class Session:
    def __init__(self, server):
        self.server = server
        self.port = SimpleNamespace(now=lambda: server.now, flush_soon=lambda: None)
        self.connection = SimpleNamespace(unsubscribe=self._unsubscribe, closed="")
        self._feed = None

    def _unsubscribe(self, sid):
        self._feed.ended = True
        self.server.feeds = [row for row in self.server.feeds if row[1] is not self._feed]

    def attach(self, feed, subject):
        self._feed = feed
        self.server.feeds.append((subject, feed))

    def deadline(self, timeout):
        return self.server.now + timeout

    async def wait(self, waitable, deadline, what):
        if self.server.later:
            self.server.later.pop(0)()
            return
        self.server.now = max(self.server.now, deadline)
        raise TimeoutExpired("no %s in time" % what)


class Js:
    """A JetStream of one program."""

    def __init__(self, server):
        self.server = server
        self._api = Api(server)

    async def key_value(self, name):
        if name not in self.server.buckets:
            raise BucketNotFound(name)
        return Bucket(self.server, name)

    async def create_key_value(self, bucket, replicas):
        self.server.call("create_key_value")
        if bucket in self.server.buckets:
            raise BucketExists(bucket)
        self.server.buckets[bucket] = {}
        return Bucket(self.server, bucket)

    async def stream(self, name):
        if name not in self.server.streams:
            raise StreamNotFound(404, 10059, "stream not found")
        return SimpleNamespace(cached_info=SimpleNamespace(config=self.server.streams[name]))

    async def create_stream(self, config):
        self.server.streams[config.name] = config
        self.server.held.setdefault(config.name, [])

    async def delete_stream(self, name):
        await self.stream(name)
        del self.server.streams[name]
        for key in [key for key in self.server.consumers if key[0] == name]:
            del self.server.consumers[key]

    async def create_consumer(self, stream, config):
        self.server.call("create")
        self.server.expire()
        await self.stream(stream)
        name = config.name or config.durable_name
        known = self.server.consumers.get((stream, name))
        if known is not None:
            if known.config.filter_subjects != config.filter_subjects:
                raise ConsumerExists(400, 10148, "consumer already exists")
            known.used = self.server.now
            return Consumer(self.server, (stream, name))
        for (other, _), each in self.server.consumers.items():
            shared = set(each.config.filter_subjects) & set(config.filter_subjects)
            if other == stream and shared and self.server.streams[stream].retention == "workqueue":
                raise WorkQueueConflict(400, 10100, "filtered consumer not unique")
        made = self.server.consumers[stream, name] = Stored(config)
        made.used = self.server.now
        return Consumer(self.server, (stream, name))

    async def consumer(self, stream, name):
        self.server.call("info")
        self.server.expire()
        if (stream, name) not in self.server.consumers:
            raise ConsumerNotFound(404, 10014, "consumer not found")
        return Consumer(self.server, (stream, name))

    async def consumers(self, stream):
        keys = [key for key in self.server.consumers if key[0] == stream]
        return [Consumer(self.server, key).cached_info for key in keys]

    async def consumer_names(self, stream):
        return [name for other, name in self.server.consumers if other == stream]

    async def delete_consumer(self, stream, name):
        self.server.call("delete")
        if self.server.consumers.pop((stream, name), None) is None:
            raise ConsumerNotFound(404, 10014, "consumer not found")

    async def unpin_consumer(self, stream, name, group):
        self.server.call("unpin")
        assert group == "PCG"
        if (stream, name) not in self.server.consumers:
            raise ConsumerNotFound(404, 10014, "consumer not found")
        self.server.consumers[stream, name].pin = None


def configured(bucket, **config):
    """Return a server with a group `g` of the stream S, and the JSON of its configuration."""
    server = Server()
    server.add_stream("S")
    server.add_stream("S-g", retention="workqueue")
    server.buckets[bucket] = {"S.g": (json.dumps(config).encode(), 1)}
    return server
