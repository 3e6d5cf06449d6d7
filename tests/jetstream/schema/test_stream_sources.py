from __future__ import annotations

from jetstream.schema.stream_sources import (
    ExternalStream,
    SourceConsumer,
    StreamSource,
    SubjectTransform,
)
from jetstream.schema.timestamp import Timestamp

JSON = {
    "name": "ORIGIN",
    "opt_start_time": "2024-01-02T03:04:05Z",
    "subject_transforms": [{"src": "a.*", "dest": "b.{{wildcard(1)}}"}],
    "external": {"api": "$JS.hub.API", "deliver": "d"},
    "consumer": {"name": "c", "deliver_subject": "s"},
}


def test_a_source_is_read_and_written():
    source = StreamSource.from_json(JSON)
    assert source == StreamSource(
        name="ORIGIN",
        opt_start_time=Timestamp.parse("2024-01-02T03:04:05Z"),
        subject_transforms=[SubjectTransform(src="a.*", dest="b.{{wildcard(1)}}")],
        external=ExternalStream(api="$JS.hub.API", deliver="d"),
        consumer=SourceConsumer(name="c", deliver_subject="s"),
    )
    assert source.to_json() == JSON


def test_zeros():
    source = StreamSource(name="ORIGIN")
    assert source.to_json() == {"name": "ORIGIN"}
    assert (source.opt_start_seq, source.filter_subject) == (0, "")
    assert (source.external, source.consumer, source.subject_transforms) == (None, None, [])
