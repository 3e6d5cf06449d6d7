"""What a client says to each release of nats-server: see record_releases.py.

A script uses a stream of its own, named like the script, so that all of them run at the same time.
Responses of the API arrive on _INBOX.<script>.api<n>, statuses of pulls on _INBOX.<script>.p<n>.
Waiting times keep 100 ms from every timer of the server.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

SOON = 0.25
SECOND = 10**9


class Step(NamedTuple):
    """A frame, and how long to listen after it."""

    frame: bytes
    listen: float


def subscribe(subject: str, sid: int) -> Step:
    return Step(f"SUB {subject} {sid}\r\n".encode(), 0.0)


def publish(subject: str, data: bytes = b"", reply: str = "", block: bytes = b"") -> Step:
    to = f" {reply}" if reply else ""
    if block:
        head = f"HPUB {subject}{to} {len(block)} {len(block) + len(data)}\r\n".encode()
        return Step(head + block + data + b"\r\n", SOON)
    return Step(f"PUB {subject}{to} {len(data)}\r\n".encode() + data + b"\r\n", SOON)


class Script:
    """Builds the steps of one script."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.steps = [subscribe(f"_INBOX.{stream}.*", 1)]
        self._calls = 0
        self._pulls = 0

    def call(self, subject: str, body: dict[str, Any] | None = None) -> Script:
        self._calls += 1
        data = json.dumps(body).encode() if body is not None else b""
        self.steps.append(
            publish(f"$JS.API.{subject}", data, f"_INBOX.{self.stream}.api{self._calls}")
        )
        return self

    def create(self, **config: Any) -> Script:
        body = {"name": self.stream, "subjects": [f"{self.stream.lower()}.>"], **config}
        return self.call(f"STREAM.CREATE.{self.stream}", {"storage": "memory", **body})

    def consumer(self, consumer: str = "C", action: str = "create", **config: Any) -> Script:
        body: dict[str, Any] = {"name": consumer, "ack_policy": "explicit", **config}
        if config.get("durable", True):
            body["durable_name"] = consumer
        body.pop("durable", None)
        call = {"stream_name": self.stream, "config": body, "action": action}
        return self.call(f"CONSUMER.CREATE.{self.stream}.{consumer}", call)

    def info(self, consumer: str = "C") -> Script:
        return self.call(f"CONSUMER.INFO.{self.stream}.{consumer}")

    def store(self, *data: bytes, **headers: str) -> Script:
        for each in data:
            self.send(each, **headers)
        return self

    def send(self, data: bytes, subject: str = "x", **headers: str) -> Script:
        lines = "".join(f"{key.replace('_', '-')}: {value}\r\n" for key, value in headers.items())
        block = f"NATS/1.0\r\n{lines}\r\n".encode() if headers else b""
        return self.raw(data, block, subject)

    def raw(self, data: bytes, block: bytes = b"", subject: str = "x") -> Script:
        self._calls += 1
        to = f"{self.stream.lower()}.{subject}"
        self.steps.append(publish(to, data, f"_INBOX.{self.stream}.api{self._calls}", block))
        return self

    def pull(self, consumer: str = "C", listen: float = SOON, **body: Any) -> Script:
        self._pulls += 1
        for name in ("expires", "idle_heartbeat"):
            if name in body:
                body[name] = round(body[name] * SECOND)
        data = json.dumps(body).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream}.{consumer}"
        step = publish(subject, data, f"_INBOX.{self.stream}.p{self._pulls}")
        self.steps.append(step._replace(listen=listen))
        return self

    def ack(self, delivered: int, seq: int, consumer_seq: int, left: int, data: bytes) -> Script:
        """Acknowledge a delivery: a server does not look at the time in the subject."""
        self._calls += 1
        words = f"{delivered}.{seq}.{consumer_seq}.1794786870000000000.{left}"
        subject = f"$JS.ACK.{self.stream}.C.{words}"
        self.steps.append(publish(subject, data, f"_INBOX.{self.stream}.api{self._calls}"))
        return self

    def listen(self, seconds: float) -> Script:
        self.steps.append(Step(b"PING\r\n", seconds))
        return self

    def subscribe(self, subject: str) -> Script:
        self.steps.append(subscribe(subject, 2))
        return self


def made(name: str, *messages: bytes, **config: Any) -> Script:
    """A stream with messages and a consumer."""
    return Script(name).create().store(*messages).consumer(**config)


STATUS = b"NATS/1.0 100 Idle Heartbeat\r\n\r\n"
GONE = b"NATS/1.0 409 Consumer Deleted\r\n\r\n"

_SCRIPTS = [
    made("EMPTY").pull(batch=5, no_wait=True),
    made("PART", b"1", b"2").pull(batch=5, no_wait=True),
    made("TIME", b"1", b"2").pull(batch=5, expires=0.5, listen=0.8),
    made("TIMEB", b"1").pull(batch=5, max_bytes=1000, expires=0.5, listen=0.8),
    made("BEAT").pull(batch=1, expires=1.0, idle_heartbeat=0.3, listen=1.3),
    made("BEATLONG").pull(batch=1, expires=1.0, idle_heartbeat=0.6),
    made("BEATONLY").pull(batch=1, idle_heartbeat=0.6),
    made("PAST", b"1").pull(batch=1, expires=1e-9),
    made("FULL", b"1", b"2").pull(batch=2, max_bytes=1000, expires=1.0),
    made("LARGE", b"x" * 200).pull(batch=1, max_bytes=100, expires=1.0),
    made("FITS", b"x" * 50, b"x" * 50, b"x" * 50).pull(batch=9, max_bytes=250, expires=1.0),
    made("CROWD", max_waiting=1).pull(batch=1, expires=1.5).pull(batch=1, expires=1.5, listen=2.0),
    made("CROWDB", max_waiting=1)
    .pull(batch=1, expires=1.5)
    .pull(batch=1, expires=1.5, idle_heartbeat=0.4, listen=2.0),
    made("MOST", max_batch=10).pull(batch=11, expires=1.0),
    made("LONGEST", max_expires=2 * SECOND).pull(batch=1, expires=3.0),
    made("WIDEST", max_bytes=1024).pull(batch=1, max_bytes=2000, expires=1.0),
    made("ACKS", b"1", b"2", max_ack_pending=1)
    .pull(batch=1, no_wait=True)
    .pull(batch=1, no_wait=True, listen=0.6),
    made("GONE")
    .pull(batch=1, expires=2.0)
    .call("CONSUMER.DELETE.GONE.C")
    .pull(batch=1, expires=0.5, listen=0.8),
    made("GONEB")
    .call("CONSUMER.DELETE.GONEB.C")
    .pull(batch=1, expires=2.0, idle_heartbeat=0.4, listen=1.1),
    made("NONE").pull("D", batch=1, no_wait=True),
    Script("NOWHERE").pull("D", batch=1, no_wait=True),
    made("ENDS").pull(batch=1, expires=2.0).call("STREAM.DELETE.ENDS").pull(batch=1, expires=0.5),
    made("IDLE", durable=False, inactive_threshold=SECOND // 2)
    .listen(2.5)
    .info()
    .pull(batch=1, expires=0.5, listen=0.8),
    made("PUSHED", deliver_subject="to.pushed").pull(batch=1, no_wait=True),
    made("STATUS", ack_policy="none")
    .raw(b"", STATUS)
    .raw(b"", GONE)
    .raw(b"data", GONE)
    .raw(b"", b"NATS/1.0\r\nStatus: 408\r\n\r\n")
    .raw(b"", b"NATS/1.0 503\r\nA: b\r\n\r\n")
    .pull(batch=9, no_wait=True),
    Script("STATUSP")
    .create()
    .subscribe("to.statusp")
    .consumer(ack_policy="none", deliver_subject="to.statusp")
    .raw(b"", STATUS)
    .raw(b"", GONE)
    .raw(b"data", GONE),
    Script("STATUSD")
    .create(allow_direct=True)
    .raw(b"", STATUS)
    .raw(b"", GONE)
    .call("DIRECT.GET.STATUSD", {"seq": 1})
    .call("DIRECT.GET.STATUSD", {"seq": 2})
    .call("STREAM.MSG.GET.STATUSD", {"seq": 1}),
    Script("PUSH")
    .create()
    .subscribe("to.push")
    .consumer(deliver_subject="to.push", idle_heartbeat=SECOND // 2)
    .store(b"1", b"2")
    .listen(0.9),
    Script("ACKED")
    .create()
    .store(b"1", b"2", b"3")
    .consumer(ack_wait=SECOND)
    .pull(batch=3, no_wait=True)
    .ack(1, 1, 1, 2, b"+ACK")
    .ack(1, 2, 2, 1, b"-NAK")
    .ack(1, 3, 3, 0, b"+TERM")
    .pull(batch=3, no_wait=True)
    .info(),
    Script("ERRORS")
    .create()
    .create(subjects=["other"])
    .call("STREAM.INFO.NOSTREAM")
    .call("STREAM.DELETE.NOSTREAM")
    .call("STREAM.PURGE.NOSTREAM")
    .info("D")
    .call("CONSUMER.DELETE.ERRORS.D")
    .consumer("D", "update")
    .consumer("D", "create")
    .consumer("D", "create")
    .consumer("D", "create", max_deliver=7)
    .call("STREAM.MSG.GET.ERRORS", {"seq": 9})
    .call("STREAM.MSG.DELETE.ERRORS", {"seq": 9}),
    Script("EXPECT")
    .create()
    .send(b"1", Nats_Msg_Id="a")
    .send(b"1", Nats_Msg_Id="a")
    .send(b"1", Nats_Expected_Last_Sequence="9")
    .send(b"1", Nats_Expected_Last_Subject_Sequence="9")
    .send(b"1", Nats_Expected_Stream="OTHER")
    .send(b"1", Nats_Expected_Last_Msg_Id="b")
    .send(b"1", Nats_Expected_Last_Subject_Sequence="0", subject="y"),
    Script("OWN")
    .create()
    .send(b"1", subject="other")
    .send(
        b"1",
        Nats_Expected_Last_Subject_Sequence="1",
        Nats_Expected_Last_Subject_Sequence_Subject="own.other",
    ),
    Script("LIMITS")
    .create(max_msgs=2, discard="new", max_msg_size=5)
    .store(b"1", b"2", b"3", b"longer")
    .call("STREAM.INFO.LIMITS")
    .call("STREAM.PURGE.LIMITS", {"keep": 1})
    .call("STREAM.MSG.DELETE.LIMITS", {"seq": 2})
    .call("STREAM.INFO.LIMITS"),
    Script("DIRECT")
    .create(allow_direct=True)
    .store(b"1", b"2")
    .send(b"3", subject="y")
    .call("DIRECT.GET.DIRECT", {"seq": 1})
    .call("DIRECT.GET.DIRECT", {"seq": 9})
    .call("DIRECT.GET.DIRECT.direct.x")
    .call("DIRECT.GET.DIRECT", {"next_by_subj": "direct.y", "seq": 1}),
    Script("BATCHES")
    .create(allow_direct=True)
    .store(b"1", b"2")
    .call("DIRECT.GET.BATCHES", {"seq": 1, "batch": 2})
    .call("DIRECT.GET.BATCHES", {"multi_last": ["batches.>"]})
    .call("DIRECT.GET.BATCHES", {"multi_last": ["batches.none"]}),
    Script("POLICY")
    .create()
    .store(b"1", b"2")
    .send(b"3", subject="y")
    .consumer("L", deliver_policy="last_per_subject", filter_subject="policy.>")
    .pull("L", batch=5, no_wait=True)
    .consumer("N", deliver_policy="new")
    .pull("N", batch=5, no_wait=True)
    .consumer("S", deliver_policy="by_start_sequence", opt_start_seq=9)
    .pull("S", batch=5, no_wait=True)
    .send(b"4")
    .pull("S", batch=5, no_wait=True)
    .info("S"),
]
SCRIPTS: dict[str, list[Step]] = {script.stream: script.steps for script in _SCRIPTS}
