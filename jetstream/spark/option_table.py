"""The table of the options: names, defaults, types, and where each applies.

docs/spark.md has it, too: docs/spark_options.py writes it there.
"""

from __future__ import annotations

from typing import NamedTuple

from .option_types import (
    DURATION,
    FILE,
    FLAG,
    NAME,
    NAMES,
    OFFSETS,
    REGEX,
    SECRET,
    SUBJECT,
    SUBJECTS,
    TEXT,
    TIMEOUT,
    TIMESTAMPS,
    TOKEN,
    URLS,
    OptionType,
    choice,
    whole,
)

# Where an option applies.
BATCH, STREAM, WRITE = "batch read", "stream read", "write"
READ = (BATCH, STREAM)
EVERYWHERE = (BATCH, STREAM, WRITE)


class Option(NamedTuple):
    """A row of the table; `default` is a text as a user would write it, or None."""

    name: str
    default: str | None
    type: OptionType
    where: tuple[str, ...]
    help: str


OPTIONS = [
    # The connection
    Option("servers", "nats://127.0.0.1:4222", URLS, EVERYWHERE, "URLs, without credentials"),
    Option("credsFile", None, FILE, EVERYWHERE, "a .creds file"),
    Option("nkeySeedFile", None, FILE, EVERYWHERE, "a file with the seed of an nkey"),
    Option("user", None, SECRET, EVERYWHERE, "with `password`"),
    Option("password", None, SECRET, EVERYWHERE, "with `user`"),
    Option("token", None, SECRET, EVERYWHERE, "a token"),
    Option("tls", "false", FLAG, EVERYWHERE, "no connection without TLS; implied by the others"),
    Option("tlsFirst", "false", FLAG, EVERYWHERE, "TLS handshake before the server sends INFO"),
    Option("tlsCa", None, FILE, EVERYWHERE, "certificates to trust, instead of the system's"),
    Option("tlsCert", None, FILE, EVERYWHERE, "our certificate, with `tlsKey`"),
    Option("tlsKey", None, FILE, EVERYWHERE, "the key of `tlsCert`"),
    Option("inboxPrefix", "_INBOX", SUBJECT, EVERYWHERE, "first tokens of reply subjects"),
    Option("domain", None, NAME, EVERYWHERE, "a JetStream domain"),
    Option("apiPrefix", None, SUBJECT, EVERYWHERE, "instead of `$JS.API`"),
    Option("requestTimeout", "5s", TIMEOUT, EVERYWHERE, "for each response of the server"),
    Option(
        "clientName",
        "pyspark-jetstream",
        NAME,
        EVERYWHERE,
        "the name of connections, and the prefix of the names of temporary consumers",
    ),
    # The messages to read
    Option(
        "stream",
        None,
        NAMES,
        EVERYWHERE,
        "one stream or several; required; writing: one, and rows are stored in no other",
    ),
    Option(
        "streamPattern",
        None,
        REGEX,
        READ,
        "instead of `stream`: all streams whose whole name matches; see *Several streams*",
    ),
    Option("filterSubjects", None, SUBJECTS, READ, "read only these, wildcards allowed"),
    Option(
        "startingOffsets",
        None,
        OFFSETS,
        READ,
        "earliest, latest, a sequence, or JSON by stream or subject; default"
        ' "earliest" for batches, "latest" for queries without a checkpoint',
    ),
    Option(
        "startingTimestamp",
        None,
        TIMESTAMPS,
        READ,
        "the first message of that time or later; a time, or JSON by stream or subject",
    ),
    Option("endingOffsets", None, OFFSETS, (BATCH,), "the sequence to stop before; default latest"),
    Option(
        "endingTimestamp",
        None,
        TIMESTAMPS,
        (BATCH,),
        "only messages before that time; a time, or JSON by stream or subject",
    ),
    Option("headersOnly", "false", FLAG, READ, "no payloads: `data` is null"),
    Option("failOnDataLoss", "true", FLAG, READ, "false: warn if messages are gone, and continue"),
    Option(
        "onRecreate",
        None,
        choice("fail", "restart", "resume"),
        (STREAM,),
        "if a stream was created again: fail; restart at its first message; or resume at the same"
        " sequence; default: fail, or restart if `failOnDataLoss=false`",
    ),
    # Key-value buckets and object stores: stores.py
    Option("bucket", None, NAME, READ, "instead of `stream`: a key-value bucket, as a table"),
    Option("keys", None, SUBJECTS, READ, "with `bucket`: only these keys, wildcards allowed"),
    Option("changes", "false", FLAG, READ, "with `bucket`: every change, not the latest values"),
    Option("objectStore", None, NAME, (BATCH,), "instead of `stream`: an object store, as files"),
    Option("pathGlobFilter", None, TEXT, (BATCH,), "with `objectStore`: only names like `*.png`"),
    # How to read them
    Option(
        "minPartitions", None, whole(1, 100_000), READ, "the least number of tasks, if possible"
    ),
    Option("maxRecordsPerPartition", None, whole(1), READ, "the most sequences for one task"),
    Option("fetchMode", "pull", choice("pull", "direct"), READ, "direct: without a consumer"),
    Option("fetchSize", "10000", whole(1, 1_000_000), READ, "messages per pull"),
    Option("arrowBatchRows", "10000", whole(1, 1_000_000), READ, "the most rows of an Arrow batch"),
    # Streaming
    Option("maxMessagesPerTrigger", None, whole(1), (STREAM,), "limit of a micro-batch"),
    Option(
        "maxBytesPerTrigger",
        None,
        whole(1),
        (STREAM,),
        "limit of a micro-batch, payloads and headers",
    ),
    Option("minMessagesPerTrigger", None, whole(1), (STREAM,), "wait until there are this many"),
    Option("maxTriggerDelay", None, DURATION, (STREAM,), "but no longer than this; default 15m"),
    Option(
        "mode", "sequence", choice("sequence", "consume"), (STREAM,), "how the position is kept"
    ),
    Option("consumer", None, NAME, (STREAM,), "the durable pull consumer of mode=consume"),
    Option(
        "onCommit", "none", choice("none", "purge"), (STREAM,), "purge messages of finished batches"
    ),
    # Writing
    Option(
        "subject",
        None,
        TEXT,
        EVERYWHERE,
        "reading: one subject, like `filterSubjects`; writing: for rows whose column has none",
    ),
    Option(
        "delivery",
        "dedup",
        choice("dedup", "atomic", "fast", "atLeastOnce"),
        (WRITE,),
        "what happens to stored rows when a task runs again",
    ),
    Option(
        "rowIds",
        "position",
        choice("position", "content"),
        (WRITE,),
        "delivery=dedup: the id of a row without a `msg_id`; content: equal rows of a micro-batch"
        " are one row",
    ),
    Option(
        "deadLetterSubject",
        None,
        SUBJECT,
        (WRITE,),
        "delivery=dedup and atLeastOnce: rows that cannot be written are published there: see"
        " *Dead letters*",
    ),
    Option("maxInFlight", "4096", whole(1, 65_536), (WRITE,), "the most unacknowledged messages"),
    Option(
        "writeId",
        None,
        TOKEN,
        (WRITE,),
        "names a batch write, so that it can be repeated: see *writeId*; default: a new name;"
        " queries are also identified by the id in their checkpoint",
    ),
    Option(
        "markerSubject",
        None,
        SUBJECT,
        (WRITE,),
        "delivery=atomic: the stream has `<markerSubject>.>`, and nothing else is published there",
    ),
    Option(
        "minDuplicateWindow",
        "2m",
        DURATION,
        (WRITE,),
        "delivery=dedup: warn if the stream's `duplicate_window` is shorter",
    ),
]
