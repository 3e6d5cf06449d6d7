"""Hints for options that do not exist here: those of Spark, of Kafka's source, and `pushdown`.

Spark stores the plan of a read with the frame, not with the query: in 4.1 to 4.3 a query without
filters uses the plan that the filters of another query have narrowed, and returns too few rows. It
calls nothing in Python at that point, and a task cannot see the filters of its query, so a source
can neither read more nor refuse. Therefore filters never narrow a read here.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOT_STORED_HERE = "the position is in Spark's checkpoint, and there are no consumer groups"
_BY_STREAM = "%s takes JSON by stream"
_CONNECTION = (
    "the connection is set up by servers, credsFile, nkeySeedFile, user and password, token, and"
    " options that begin with tls"
)

# In lower case, as Spark passes some of them.
HINTS = {
    "path": "set option stream instead",  # of load(), save() or start()
    "provider": "a stream is not a table of a catalog; create a temporary view, or load it",
    "pushdown": "Spark applies the plan that it makes for the filters of one query to the other"
    " queries on the frame, which would read too few rows; narrow the read by filterSubjects,"
    " startingOffsets, endingOffsets, startingTimestamp and endingTimestamp",
    # Those of Kafka's source and sink:
    "kafka.bootstrap.servers": "set option servers instead",
    "kafka.group.id": _NOT_STORED_HERE,
    "groupidprefix": _NOT_STORED_HERE + "; clientName names connections and consumers",
    "kafka.client.id": "set option clientName instead",
    "subscribe": "set option stream instead, and filterSubjects for a part of it",
    "subscribepattern": "set option streamPattern instead",
    "assign": "a stream has no partitions: set option stream, and filterSubjects for a part of it",
    "topic": "set option stream or subject instead",
    "maxoffsetspertrigger": "set option maxMessagesPerTrigger instead",
    "minoffsetspertrigger": "set option minMessagesPerTrigger instead",
    "startingoffsetsbytimestamp": _BY_STREAM % "startingTimestamp",
    "endingoffsetsbytimestamp": _BY_STREAM % "endingTimestamp",
    "startingoffsetsbytimestampstrategy": "a time after the last message is the end of the stream",
    "kafkaconsumer.polltimeoutms": "set option requestTimeout instead",
    "includeheaders": "the column headers is always there",
}


def hint_for(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown option; "" if nothing is known.

    known  the options that are possible here
    """
    names = {each.lower(): each for each in known}
    if name.lower() in HINTS:
        return HINTS[name.lower()]
    if name.lower().startswith("kafka."):
        return _CONNECTION
    near = difflib.get_close_matches(name.lower(), names, n=1)
    return "did you mean %s?" % names[near[0]] if near else ""
