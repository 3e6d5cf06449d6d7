"""Api: the calls of the JetStream API that the simulated server answers.

Streams: CREATE, UPDATE, INFO, DELETE, PURGE, NAMES, LIST, MSG.GET, MSG.DELETE, DIRECT.GET.
Consumers: CREATE, INFO, DELETE, NAMES, LIST. The account: INFO. Any other call is answered with an
error that says so.
"""

from __future__ import annotations

import json
from binascii import b2a_base64

from natsproto.testing.sim.peer import status_block
from natsproto.wire.subjects import matches

from .consumers import stamp
from .stream import not_modeled

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from natsproto.testing.sim.peer import Peer
    from natsproto.wire.frames import Pub

    from .service import Assets, Consumer, JetStreamService
    from .stream import StoredMessage

    Answer: TypeAlias = dict[str, Any]

STREAM_NOT_FOUND = (404, 10059, "stream not found")
STREAM_EXISTS = (400, 10058, "stream name already in use with a different configuration")
CONSUMER_NOT_FOUND = (404, 10014, "consumer not found")
CONSUMER_EXISTS = (400, 10148, "consumer already exists")
CONSUMER_MISSING = (400, 10149, "consumer does not exist")
MESSAGE_NOT_FOUND = (404, 10037, "no message found")
SUBJECTS_OVERLAP = (400, 10065, "subjects overlap with an existing stream")
_PAGE = 256
# Fields of configurations that would change what the server does.
_STREAM_FIELDS = [
    "mirror",
    "sources",
    "subject_transform",
    "republish",
    "allow_msg_ttl",
    "allow_msg_counter",
    "allow_msg_schedules",
    "allow_atomic",
    "allow_batched",
]
_CONSUMER_FIELDS = ("priority_groups", "pause_until", "rate_limit_bps", "sample_freq")


def error(code: int, err_code: int, description: str) -> Answer:
    """Return an error of the API."""
    return {"error": {"code": code, "err_code": err_code, "description": description}}


class Api:
    """The calls of one server."""

    def __init__(self, service: JetStreamService) -> None:
        self._service = service
        self._calls: dict[str, Callable[[list[str], Answer], Answer]] = {
            "INFO": self._account,
            "STREAM.CREATE": self._create_stream,
            "STREAM.UPDATE": self._update_stream,
            "STREAM.INFO": self._stream_info,
            "STREAM.DELETE": self._delete_stream,
            "STREAM.PURGE": self._purge,
            "STREAM.NAMES": self._stream_names,
            "STREAM.LIST": self._stream_list,
            "STREAM.MSG.GET": self._get_message,
            "STREAM.MSG.DELETE": self._delete_message,
            "CONSUMER.CREATE": self._create_consumer,
            "CONSUMER.INFO": self._consumer_info,
            "CONSUMER.DELETE": self._delete_consumer,
            "CONSUMER.NAMES": self._consumer_names,
            "CONSUMER.LIST": self._consumer_list,
        }

    def call(self, peer: Peer, pub: Pub, endpoint: str) -> bool:
        """Answer a call; return whether anything listens to it."""
        words = endpoint.split(".")
        if words[0] == "DIRECT":
            return self._direct(peer, pub, words[2:])
        if not self._service.leader and words[0] != "INFO":
            return True  # streams without a leader do not answer
        count = 1 if words[0] == "INFO" else 3 if words[1] == "MSG" else 2
        call = self._calls.get(".".join(words[:count]))
        if call is None:
            answer = error(*not_modeled(endpoint))
        else:
            answer = call(words[count:], json.loads(pub.data) if pub.data else {})
        self._answer(peer, pub, answer)
        if words[0] == "CONSUMER" and words[1] == "CREATE":
            assets = self._service.assets.get(words[2])
            if assets is not None:
                assets.pump()
        return True

    def _answer(self, peer: Peer, pub: Pub, answer: Answer) -> None:
        peer.deliver(pub.raw_reply, pub.raw_reply, b"", None, json.dumps(answer).encode())

    # Streams

    def _account(self, words: list[str], body: Answer) -> Answer:
        consumers = len(self._service.consumers())
        level = {"level": self._service.release.level, "total": 0, "errors": 0}
        return {"streams": len(self._service.assets), "consumers": consumers, "api": level}

    def _create_stream(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is not None:
            if assets.stream.config != _with_defaults(body):
                return error(*STREAM_EXISTS)
            return self._describe(assets)
        config = _with_defaults(body)
        strange = [name for name in _STREAM_FIELDS if config.get(name)]
        if strange:
            return error(*not_modeled("a stream with " + strange[0]))
        for other in self._service.assets.values():
            for subject in config["subjects"]:
                for theirs in other.stream.subjects:
                    if matches(subject, theirs) or matches(theirs, subject):
                        return error(*SUBJECTS_OVERLAP)
        answer = self._describe(self._service.create(config))
        answer["did_create"] = True
        return answer

    def _update_stream(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        assets.stream.config = _with_defaults(body)
        return self._describe(assets)

    def _stream_info(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        answer = self._describe(assets, body.get("subjects_filter", ""))
        if body.get("subjects_filter"):
            count = len(answer["state"].get("subjects", ()))
            answer["total"] = count
            answer["offset"] = 0
            answer["limit"] = max(count, 100_000)
        return answer

    def _describe(self, assets: Assets, filters: str = "") -> Answer:
        stream = assets.stream
        return {
            "config": stream.config,
            "created": stamp(stream.created),
            "state": stream.state(len(assets.consumers), filters),
            "ts": stamp(self._service.clock.now),
        }

    def _delete_stream(self, words: list[str], body: Answer) -> Answer:
        if words[0] not in self._service.assets:
            return error(*STREAM_NOT_FOUND)
        self._service.delete(words[0])
        return {"success": True}

    def _purge(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        filters = [body["filter"]] if body.get("filter") else []
        purged = assets.stream.purge(filters, body.get("seq", 0), body.get("keep", 0))
        return {"success": True, "purged": purged}

    def _streams(self, body: Answer) -> list[Assets]:
        subject = body.get("subject", "")
        found = [self._service.assets[name] for name in sorted(self._service.assets)]
        if not subject:
            return found
        return [
            each
            for each in found
            if any(matches(own, subject) or matches(subject, own) for own in each.stream.subjects)
        ]

    def _stream_names(self, words: list[str], body: Answer) -> Answer:
        return _page("streams", [each.stream.name for each in self._streams(body)], body)

    def _stream_list(self, words: list[str], body: Answer) -> Answer:
        return _page("streams", [self._describe(each) for each in self._streams(body)], body)

    # Stored messages

    def _get_message(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        found = _find(assets, body)
        if found is None:
            return error(*MESSAGE_NOT_FOUND)
        message = {
            "subject": found.subject,
            "seq": found.seq,
            "time": stamp(found.time),
        }
        if found.data:
            message["data"] = b2a_base64(found.data).decode().strip()
        if found.block is not None:
            message["hdrs"] = b2a_base64(found.block).decode().strip()
        return {"message": message}

    def _delete_message(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        if not assets.stream.remove(body["seq"]):
            return error(400, 10043, "sequence %d not found" % body["seq"])
        return {"success": True}

    def _direct(self, peer: Peer, pub: Pub, words: list[str]) -> bool:
        assets = self._service.assets.get(words[0])
        if assets is None or not assets.stream.config.get("allow_direct"):
            return False
        body: Answer = json.loads(pub.data) if pub.data else {}
        if len(words) > 1:
            body = {"last_by_subj": ".".join(words[1:])}
        if "batch" in body or "multi_last" in body:
            if self._service.release.gets_batches:
                self._direct_batch(peer, pub, assets, body)
                return True
            if "multi_last" in body:  # it reads only the fields that it knows
                peer.deliver(
                    pub.raw_reply, pub.raw_reply, b"", status_block("408 Empty Request"), b""
                )
                return True
        found = _find(assets, body)
        if found is None:
            block, data = status_block("404 Message Not Found"), b""
        else:
            block, data = _direct_block(assets, found), found.data
        peer.deliver(pub.raw_reply, pub.raw_reply, b"", block, data)
        return True

    def _direct_batch(self, peer: Peer, pub: Pub, assets: Assets, body: Answer) -> None:
        stream = assets.stream
        up_to: int = body.get("up_to_seq", 0) or stream.last_seq
        if "multi_last" in body:
            found = list(stream.last(body["multi_last"], up_to))
            found = [each for each in found if each.seq >= body.get("seq", 0)]
        else:
            filters = [body["next_by_subj"]] if "next_by_subj" in body else []
            found = stream.select(filters, body.get("seq", 0))
        reply = pub.raw_reply
        if not found:
            peer.deliver(reply, reply, b"", status_block("404 No Results"), b"")
            return
        page = found[: body.get("batch") or len(found)]
        left = len(found)
        last = 0
        for each in page:
            left -= 1
            place = "Nats-Num-Pending: %d\r\nNats-Last-Sequence: %d" % (left, last)
            block = _direct_block(assets, each, place)
            peer.deliver(reply, reply, b"", block, each.data)
            last = each.seq
        lines = "Nats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n" % (left, last)
        if "multi_last" in body:
            lines += "Nats-UpTo-Sequence: %d\r\n" % up_to
        peer.deliver(reply, reply, b"", status_block("204 EOB", header=lines), b"")

    # Consumers

    def _create_consumer(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        config: Answer = body["config"]
        name: str = config.get("name") or config.get("durable_name") or ""
        name = words[1] if len(words) > 1 else name
        strange = [field for field in _CONSUMER_FIELDS if config.get(field)]
        if strange:
            return error(*not_modeled("a consumer with " + strange[0]))
        action = body.get("action", "")
        known = assets.consumers.get(name)
        if known is not None:
            if action == "create" and known.config != config:
                return error(*CONSUMER_EXISTS)
            known.config = config
            return self._describe_consumer(assets, known)
        if action == "update":
            return error(*CONSUMER_MISSING)
        return self._describe_consumer(assets, assets.add(name, config))

    def _describe_consumer(self, assets: Assets, consumer: Consumer) -> Answer:
        answer: Answer = {
            "stream_name": assets.stream.name,
            "name": consumer.name,
            "created": stamp(consumer.created),
            "config": consumer.config,
            "ts": stamp(self._service.clock.now),
        }
        answer.update(consumer.info())
        return answer

    def _consumer_info(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        if words[1] not in assets.consumers:
            return error(*CONSUMER_NOT_FOUND)
        return self._describe_consumer(assets, assets.consumers[words[1]])

    def _delete_consumer(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        if words[1] not in assets.consumers:
            return error(*CONSUMER_NOT_FOUND)
        assets.remove(words[1])
        return {"success": True}

    def _consumer_names(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        return _page("consumers", sorted(assets.consumers), body)

    def _consumer_list(self, words: list[str], body: Answer) -> Answer:
        assets = self._service.assets.get(words[0])
        if assets is None:
            return error(*STREAM_NOT_FOUND)
        found = [self._describe_consumer(assets, each) for each in assets.each()]
        return _page("consumers", found, body)


def _with_defaults(config: Answer) -> Answer:
    """Return a stream's configuration as the server stores it."""
    config = dict(config)
    config.pop("pedantic", None)
    defaults: Answer = {
        "subjects": [config["name"]],
        "retention": "limits",
        "storage": "file",
        "discard": "old",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        "max_age": 0,
        "num_replicas": 1,
        "duplicate_window": 120 * 10**9,
    }
    for name in defaults:
        if name not in config or (name == "max_msgs_per_subject" and not config[name]):
            config[name] = defaults[name]
    return config


def _page(key: str, rows: list[Any], body: Answer) -> Answer:
    offset: int = body.get("offset", 0)
    shown = rows[offset : offset + _PAGE]
    return {"total": len(rows), "offset": offset, "limit": _PAGE, key: shown}


def _find(assets: Assets, body: Answer) -> StoredMessage | None:
    """Return the message that a get asks for."""
    stream = assets.stream
    if "last_by_subj" in body:
        found = stream.last([body["last_by_subj"]])
        return found[-1] if found else None
    if "next_by_subj" in body:
        return stream.following([body["next_by_subj"]], body.get("seq", 1))
    return stream.at(body["seq"])


def _direct_block(assets: Assets, message: StoredMessage, more: str = "") -> bytes:
    """Return the headers of a message as direct get returns it: its own, then its place."""
    head = message.block[:-2] if message.block is not None else b"NATS/1.0\r\n"
    lines = "Nats-Stream: %s\r\nNats-Subject: %s\r\n" % (assets.stream.name, message.subject)
    lines += "Nats-Sequence: %d\r\nNats-Time-Stamp: %s\r\n" % (message.seq, stamp(message.time))
    return head + lines.encode() + ((more + "\r\n").encode() if more else b"") + b"\r\n"
