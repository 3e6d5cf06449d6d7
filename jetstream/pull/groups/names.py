"""Names of consumer groups on the server, the same as in orbit.go's pcgroups (GROUP-1)."""

from __future__ import annotations

from natsproto.wire.subjects import check_new_name

STATIC_BUCKET = "static-consumer-groups"
ELASTIC_BUCKET = "elastic-consumer-groups"
PRIORITY_GROUP = "PCG"  # GROUP-8


def key_of(stream: str, group: str) -> str:
    """Return the key of a group's configuration in its bucket."""
    return "%s.%s" % (check_new_name("stream", stream), check_new_name("group", group))


def static_consumer(group: str, member: str) -> str:
    """Return the name of the durable consumer of a member of a static group (GROUP-6)."""
    return "%s-%s" % (group, check_new_name("member", member))


def elastic_stream(stream: str, group: str) -> str:
    """Return the name of the work queue of an elastic group (GROUP-7)."""
    return "%s-%s" % (stream, group)
