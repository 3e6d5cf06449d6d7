from __future__ import annotations

import pytest

from jetstream.schema.stream_config import ConsumerLimits, Placement, StreamConfig
from jetstream.schema.stream_sources import StreamSource, SubjectTransform
from natsproto.errors import InvalidName


def test_a_check_is_by_the_rules():
    StreamConfig(name="S").check()
    StreamConfig(name="é").check(new=False)
    with pytest.raises(InvalidName):
        StreamConfig(name="é").check()


def test_nested_objects_from_keywords():
    config = StreamConfig(
        name="S",
        placement={"tags": ("a", "b")},
        sources=[{"name": "A", "subject_transforms": [{"src": "a", "dest": "b"}]}],
        consumer_limits={"inactive_threshold": 5},
    )
    assert config.placement == Placement(tags=["a", "b"])
    transform = SubjectTransform(src="a", dest="b")
    assert config.sources == [StreamSource(name="A", subject_transforms=[transform])]
    assert config.consumer_limits == ConsumerLimits(inactive_threshold=5.0)
    assert config.to_json() == {
        "name": "S",
        "placement": {"tags": ["a", "b"]},
        "sources": [{"name": "A", "subject_transforms": [{"src": "a", "dest": "b"}]}],
        "consumer_limits": {"inactive_threshold": 5000000000},
    }


def test_zeros():
    config = StreamConfig()
    assert config.to_json() == {}
    assert (config.retention, config.discard, config.storage) == ("limits", "old", "file")
    assert (config.compression, config.persist_mode) == ("none", "default")
    assert config.mirror is None
    assert config.consumer_limits.max_ack_pending == 0
