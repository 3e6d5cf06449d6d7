"""Tables: the calls, statuses and headers of JetStream in words."""

from __future__ import annotations

# Endpoint, number of names after it, what the client does, and what a successful response means.
# The `%s` of the request take the names, of the consumer and of the stream; that of the response
# takes "consumer `C`" or "stream `S`".
CALLS = [
    ("CONSUMER.MSG.NEXT", 2, "pulls from consumer `%s` of stream `%s`", ""),
    ("CONSUMER.DURABLE.CREATE", 2, "creates consumer `%s` of stream `%s`", "%s exists now"),
    ("CONSUMER.CREATE", 2, "creates consumer `%s` of stream `%s`", "%s exists now"),
    ("CONSUMER.CREATE", 1, "creates a consumer of stream `%s`", "%s has a new consumer"),
    ("CONSUMER.INFO", 2, "asks for the state of consumer `%s` of stream `%s`", "the state of %s"),
    ("CONSUMER.DELETE", 2, "deletes consumer `%s` of stream `%s`", "%s is deleted"),
    ("CONSUMER.PAUSE", 2, "pauses or resumes consumer `%s` of stream `%s`", "%s accepts that"),
    ("CONSUMER.RESET", 2, "resets consumer `%s` of stream `%s`", "%s is reset"),
    ("CONSUMER.UNPIN", 2, "unpins the client of consumer `%s` of stream `%s`", "%s accepts that"),
    ("CONSUMER.LEADER.STEPDOWN", 2, "asks for another leader of `%s` of `%s`", "%s accepts that"),
    ("CONSUMER.NAMES", 1, "lists the names of the consumers of stream `%s`", "the list"),
    ("CONSUMER.LIST", 1, "lists the consumers of stream `%s`", "the list"),
    ("STREAM.CREATE", 1, "creates stream `%s`", "%s exists now"),
    ("STREAM.UPDATE", 1, "changes stream `%s`", "%s is changed"),
    ("STREAM.INFO", 1, "asks for the state of stream `%s`", "the state of %s"),
    ("STREAM.DELETE", 1, "deletes stream `%s`", "%s is deleted"),
    ("STREAM.PURGE", 1, "removes messages from stream `%s`", "%s is purged"),
    ("STREAM.MSG.GET", 1, "asks stream `%s` for a stored message", "the stored message"),
    ("STREAM.MSG.DELETE", 1, "deletes a message of stream `%s`", "%s has deleted it"),
    ("STREAM.LEADER.STEPDOWN", 1, "asks for another leader of stream `%s`", "%s accepts that"),
    ("STREAM.NAMES", 0, "lists the names of streams", "the list"),
    ("STREAM.LIST", 0, "lists the streams", "the list"),
    ("DIRECT.GET", 1, "asks stream `%s` for a stored message, by direct get", ""),
    ("INFO", 0, "asks for the limits and the usage of its account", "the state of the account"),
]

# Code, start of the description in lower case, and what it means for a pull or a direct get. The
# first match wins.
STATUSES = [
    (
        100,
        "flowcontrol",
        "The client should answer after it has read all messages before this one. Until then the "
        "server sends at most a window of messages.",
    ),
    (100, "", "There is nothing to deliver, but the server is alive."),
    (204, "", "That was the last message of the batch."),
    (400, "", "The server rejects the request."),
    (404, "message not found", "The stream has no such message."),
    (404, "no results", "The stream has no such message."),
    (404, "", "No more messages are available now, so the pull ends."),
    (408, "request timeout", "The pull has expired."),
    (408, "requests pending", "Other pulls are waiting already, so this one, with no_wait, ends."),
    (408, "", "The server rejects the request."),
    (409, "batch completed", "The pull has delivered its batch."),
    (409, "batch-completed", "The pull has delivered its batch."),
    (409, "message size exceeds maxbytes", "The next message does not fit in max_bytes."),
    (409, "exceeded maxwaiting", "Too many pulls are waiting at the consumer."),
    (409, "exceeded max", "The pull asks for more than the consumer allows."),
    (409, "consumer deleted", "The consumer was deleted, and the pull ends."),
    (409, "consumer is push based", "The consumer delivers by push and cannot be pulled from."),
    (409, "leadership change", "The consumer has another leader, which does not know the pull."),
    (409, "server shutdown", "The server of the consumer stops, and the pull ends."),
    (412, "", "The request needs a higher API level than the server has."),
    (423, "", "The pin id is not the current one: this client is not pinned."),
    (503, "", "Nothing serves the pull: the consumer does not exist, or it has no leader."),
]

HEADERS = [
    ("Nats-Msg-Id", "The id `%s` lets the stream recognize a duplicate."),
    ("Nats-Expected-Stream", "The message is meant for stream `%s` only."),
    ("Nats-Expected-Last-Sequence", "The stream must be at sequence %s."),
    ("Nats-Expected-Last-Subject-Sequence", "The subject must be at sequence %s."),
    ("Nats-Expected-Last-Msg-Id", "The last message must have the id `%s`."),
    ("Nats-TTL", "Its TTL is `%s`."),
    ("Nats-Rollup", "The message replaces earlier ones (rollup: %s)."),
    ("KV-Operation", "The key-value operation is %s."),
    ("Nats-Batch-Sequence", "It is number %s of an atomic batch."),
    ("Nats-Batch-Commit", "It commits the batch."),
    ("Nats-Incr", "It adds %s to a counter."),
    ("Nats-Schedule", "It is a schedule: %s."),
    ("Nats-Required-Api-Level", "The server must have API level %s."),
    ("Nats-Pin-Id", "The pin id is `%s`."),
]

# The fields of a pull request, in the order in which they are explained.
PULL_FIELDS = [
    ("max_bytes", "of at most %s bytes in all"),
    ("group", "as a member of priority group `%s`"),
    ("min_pending", "when at least %s messages are pending"),
    ("min_ack_pending", "when at least %s messages are unacknowledged"),
    ("priority", "with priority %s"),
    ("id", "with pin id `%s`"),
]
