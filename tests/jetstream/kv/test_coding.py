"""How a bucket with codecs stores keys, filters and values, and reads entries."""

from __future__ import annotations

import pytest

from jetstream.errors import CodecError
from jetstream.kv import AesGcmCodec, Base64Codec, KeyValueEntry, PathCodec
from jetstream.kv.coding import PLAIN, Coded
from jetstream.schema.timestamp import Timestamp
from natsproto.errors import InvalidName, InvalidValue


class Reverse:
    """Keys and values backwards; it has no encode_filter."""

    def encode_key(self, key):
        return key[::-1]

    decode_key = encode_key

    def encode_value(self, value, key):
        return value[::-1]

    decode_value = encode_value


class Broken:
    """A codec whose calls raise this error, or return this value."""

    def __init__(self, result):
        self.result = result

    def encode_key(self, key):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    decode_key = encode_key

    def encode_value(self, value, key):
        return self.encode_key(key)

    decode_value = encode_value


def entry(key, value=b"v", operation="PUT"):
    return KeyValueEntry("b", key, value, 7, Timestamp(1), 3, operation)


@pytest.mark.rule("KVCODEC-1")
def test_plain_changes_nothing():
    assert PLAIN.key("a.b") == "a.b"
    assert PLAIN.filters("a.*") == ["a.*"]
    assert PLAIN.value(b"v", "a") == b"v"
    stored = entry("a")
    assert PLAIN.entry(stored) is stored
    with pytest.raises(InvalidName):
        PLAIN.key("a b")


@pytest.mark.rule("KVCODEC-1")
def test_keys_and_values_are_encoded_independently():
    keys, values = Coded(Base64Codec(), None), Coded(None, Base64Codec())
    assert (keys.key("a b"), keys.value(b"v", "x")) == ("YSBi", b"v")
    assert (values.key("a.b"), values.value(b"v", "x")) == ("a.b", b"dg")
    assert values.filters(["a.*", "b"]) == ["a.*", "b"]
    assert keys.entry(entry("YSBi")) == entry("a b")
    assert values.entry(entry("a", b"dg")) == entry("a", b"v")
    with pytest.raises(InvalidName, match="contains ' '"):
        values.key("a b")


@pytest.mark.rule("KVCODEC-5")
def test_codecs_apply_in_their_order_and_in_reverse():
    secret = AesGcmCodec(bytes(16))
    coding = Coded([PathCodec(), Base64Codec()], (secret, Base64Codec()))
    stored = coding.key("/my files/a")
    assert stored == "X3Jvb3Rf.bXkgZmlsZXM.YQ"
    value = coding.value(b"v", stored)
    assert secret.decode_value(Base64Codec().decode_value(value, stored), stored) == b"v"
    assert coding.entry(entry(stored, value)) == entry("/my files/a")
    assert coding.filters(["/my files/*", ">"]) == ["X3Jvb3Rf.bXkgZmlsZXM.*", ">"]


@pytest.mark.rule("KVCODEC-6")
@pytest.mark.parametrize("codecs", [Reverse(), [Base64Codec(), Reverse()]])
@pytest.mark.parametrize("pattern", ["a.*", "a.>", "*"])
def test_wildcards_need_a_codec_with_encode_filter(codecs, pattern):
    with pytest.raises(InvalidValue, match=r"codec Reverse has no encode_filter: '.*'; use '>'"):
        Coded(codecs, None).filters(["b", pattern])


@pytest.mark.rule("KVCODEC-6")
def test_filters_without_wildcards_work_with_every_codec():
    coding = Coded(Reverse(), None)
    assert coding.filters("abc") == ["cba"]
    assert coding.filters(">") == [">"]


@pytest.mark.rule("D-KVCODEC-9")
@pytest.mark.parametrize("key", ["", "a..b", ".", 5, None])
def test_encoded_keys_must_be_valid(key):
    coding = Coded(Base64Codec(), None)
    with pytest.raises(InvalidName, match=r"KV-2"):
        coding.key(key)
    with pytest.raises((InvalidName, InvalidValue), match=r"KV-[24]"):
        coding.filters([key])


@pytest.mark.rule("D-KVCODEC-9")
def test_encoded_keys_must_not_be_reserved_for_writing():
    coding = Coded(Reverse(), None)
    assert coding.key("a.vk_") == "_kv.a"
    with pytest.raises(InvalidName, match=r"key 'a.vk_' is not valid once encoded: .* reserved"):
        coding.key("a.vk_", write=True)
    with pytest.raises(InvalidName, match=r"filter 'a\.>\.b' is not valid once encoded"):
        Coded(Base64Codec(), None).filters("a.>.b")
    with pytest.raises(InvalidValue, match="not a filter or a list of filters"):
        coding.filters([])


@pytest.mark.rule("D-KVCODEC-7")
@pytest.mark.parametrize(
    ("result", "said"),
    [
        (KeyError("lost"), "'lost'"),
        (ValueError(), "ValueError"),
        (5, "it returned int, not"),
    ],
)
def test_a_codec_that_fails(result, said):
    coding = Coded(Broken(result), Broken(result))
    stored = entry("a")
    calls = [
        (lambda: coding.key("a"), "key 'a' cannot be encoded by Broken: ", None),
        (lambda: coding.filters("a"), "filter 'a' cannot be encoded by Broken: ", None),
        (lambda: coding.value(b"v", "a"), "value of key 'a' cannot be encoded by Broken: ", None),
        (lambda: coding.entry(stored), "key 'a' cannot be decoded by Broken: ", stored),
        (lambda: coding.entry(stored, "a"), "value of key 'a' cannot be decoded by ", stored),
    ]
    for call, text, shown in calls:
        with pytest.raises(CodecError) as caught:
            call()
        assert str(caught.value).startswith(text)
        assert said in str(caught.value)
        assert caught.value.entry is shown
        if isinstance(result, Exception):
            assert caught.value.__cause__ is result


@pytest.mark.rule("D-KVCODEC-7")
def test_entries_without_a_value_are_not_decoded():
    coding = Coded(None, Broken(KeyError()))
    for operation in ("DEL", "PURGE"):
        assert coding.entry(entry("a", b"", operation)) == entry("a", b"", operation)
    assert coding.entry(entry("a", b""), has_value=False) == entry("a", b"")


@pytest.mark.rule("D-KVCODEC-4")
def test_errors_of_names_are_raised_as_they_are():
    with pytest.raises(InvalidName, match="reads back as a slash"):
        Coded(PathCodec(), None).key("a.b")


@pytest.mark.rule("KVCODEC-1")
@pytest.mark.parametrize("codecs", [[], (), "base64", Base64Codec, [Base64Codec(), 5], object()])
def test_codecs_are_checked(codecs):
    with pytest.raises(InvalidValue, match=r"keys is .*\(KVCODEC-1\)"):
        Coded(codecs, None)
    with pytest.raises(InvalidValue, match=r"values is .*\(KVCODEC-1\)"):
        Coded(None, codecs)


def test_values_must_be_bytes():
    assert Coded(None, Base64Codec()).value(memoryview(b"v"), "a") == b"dg"
    with pytest.raises(InvalidValue, match="is str, not bytes"):
        Coded(None, Base64Codec()).value("v", "a")
