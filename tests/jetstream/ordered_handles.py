"""Ordered consumer handles on a stage, with short forms of their requests and messages."""

from __future__ import annotations

import json

from jetstream.api.client import ApiClient
from jetstream.ordered.api import open_ordered
from jetstream.ordered.config import ordered_config
from tests.jetstream.support import Delivery, Stage, Status

DEFAULTS = {
    "filter_subjects": None,
    "deliver_policy": "all",
    "opt_start_seq": None,
    "opt_start_time": None,
    "replay_policy": "instant",
    "headers_only": False,
    "inactive_threshold": 300.0,
    "metadata": None,
}
DELETED = Status("409 Consumer Deleted")
ABSENT = {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}}
NO_STREAM = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
# By its count, nothing of what was sent is missing.
TIMEOUT = Status("408 Request Timeout", Nats_Pending_Messages=10**6)
LEADER = Status("409 Leadership Change")
EMPTY = Status("404 No Messages")


def config(**options):
    return ordered_config(**{**DEFAULTS, **options})


def created(seq=0, consumer_seq=0, **fields):
    delivered = {"consumer_seq": consumer_seq, "stream_seq": seq}
    return {"stream_name": "S", "name": "o", "config": fields, "delivered": delivered}


def delivery(serial, seq, number):
    return Delivery("s.a", f"$JS.ACK.S.o_{serial}.1.{seq}.{number}.1.0", b"%d" % seq)


def handle(*answers, most=None, info=None, **options):
    """Return a stage with these answers, and the handle, whose first consumer exists."""
    stage = Stage(created(), *answers, **(info or {}))
    api = ApiClient(stage.client.session, "", "$JS.API", 5.0)
    ordered = stage.run(open_ordered(api, "S", "o", config(**options), most))
    assert [short(pub) for pub in stage.pubs] == ["create 1"]
    return stage, ordered


def short(pub):
    """`create 2 from 5`, `delete 1`, `pull 1 10`, `info 1`, or `stream` for STREAM.INFO."""
    words = pub.subject.split(".")
    if words[2] == "STREAM":
        return "stream"
    verb = {"CREATE": "create", "DELETE": "delete", "MSG": "pull", "INFO": "info"}[words[3]]
    serial = words[6 if verb == "pull" else 5].split("_")[1]
    body = json.loads(pub.data or b"{}")
    if verb == "pull":
        return "pull %s %d" % (serial, body["batch"])
    start = body.get("config", {}).get("opt_start_seq")
    return "%s %s" % (verb, serial) + (" from %d" % start if start else "")


def sent(stage):
    return [short(pub) for pub in stage.pubs]


def seqs(messages):
    return [int(msg.data) for msg in messages]
