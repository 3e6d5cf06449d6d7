from __future__ import annotations

import pytest

from jetstream.services import names
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue

pytestmark = pytest.mark.rule("D-SERVICE-1")


@pytest.mark.rule("SERVICE-1", "SERVICE-5")
@pytest.mark.parametrize("name", ["a", "A-1_z", "-", "0", "x" * 200])
def test_names(name):
    assert names.check_name("service name", name) == name


@pytest.mark.rule("SERVICE-1", "SERVICE-5")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "service name is empty: a name is required (SERVICE-1)"),
        (None, "service name is not a str: None (SERVICE-1)"),
        (
            "a b",
            "service name contains ' ', which is not a letter, digit, '-' or '_': 'a b'"
            " (SERVICE-1)",
        ),
        (
            "a.b",
            "service name contains '.', which is not a letter, digit, '-' or '_': 'a.b'"
            " (SERVICE-1)",
        ),
        (
            ">",
            "service name contains '>', which is not a letter, digit, '-' or '_': '>' (SERVICE-1)",
        ),
        ("\u00fc", None),
        ("\u0661", None),  # a digit, but not an ASCII one
    ],
)
def test_names_that_are_refused(name, text):
    with pytest.raises(InvalidName) as caught:
        names.check_name("service name", name)
    assert text is None or str(caught.value) == text


VALID = [
    "0.0.0",
    "1.2.3",
    "10.200.3000",
    "1" + "0" * 30 + ".0.0",
    "1.0.0-rc",
    "1.0.0-rc.1",
    "1.0.0-0",
    "1.0.0-0a",
    "1.0.0-00-a",
    "1.0.0---",
    "1.0.0-a-b.c-d",
    "1.0.0+1",
    "1.0.0+001",
    "1.0.0+a.b-c",
    "1.0.0+-",
    "1.0.0-rc.1+linux.x86-64",
]
INVALID = [
    "",
    "1",
    "1.2",
    "1.2.3.4",
    "1..3",
    "1.2.",
    ".1.2",
    "v1.2.3",
    "1.2.x",
    "1.2.-3",
    "-1.2.3",
    "01.2.3",
    "1.02.3",
    "1.2.03",
    "1.2.3-",
    "1.2.3-a..b",
    "1.2.3-.a",
    "1.2.3-01",
    "1.2.3-a.01",
    "1.2.3-a_b",
    "1.2.3+",
    "1.2.3+a..b",
    "1.2.3+a_b",
    "1.2.3+a+b",
    "1.2.3-a+",
    "1.2.3 ",
    " 1.2.3",
    "1.2.3\n",
    "1.2.\u0663",
    None,
    1,
]


@pytest.mark.rule("SERVICE-2")
@pytest.mark.parametrize("version", VALID)
def test_versions(version):
    assert names.check_version(version) == version


@pytest.mark.rule("SERVICE-2")
@pytest.mark.parametrize("version", INVALID)
def test_versions_that_are_refused(version):
    with pytest.raises(InvalidValue, match=r"^version is not a .*SERVICE-2"):
        names.check_version(version)


def test_descriptions():
    assert names.check_description("") == ""
    with pytest.raises(InvalidValue, match="description is not a str: None"):
        names.check_description(None)


@pytest.mark.rule("SERVICE-3")
def test_metadata_is_copied():
    given = {"a": "b"}
    copy = names.check_metadata(given)
    given["c"] = "d"
    assert copy == {"a": "b"}
    assert names.check_metadata(None) == {}


@pytest.mark.rule("SERVICE-3")
@pytest.mark.parametrize("metadata", [[], "a", {"a": 1}, {1: "a"}, {"a": None}])
def test_metadata_that_is_refused(metadata):
    with pytest.raises(InvalidValue, match=r"^metadata is not a .*SERVICE-3"):
        names.check_metadata(metadata)


@pytest.mark.rule("SERVICE-7")
@pytest.mark.parametrize("name", ["", "a", "a.b", "a.*"])
def test_groups(name):
    assert names.check_group(name) == name


@pytest.mark.rule("SERVICE-7")
@pytest.mark.parametrize("name", ["a.>", ">", "a..b", "a b", ".", None])
def test_groups_that_are_refused(name):
    with pytest.raises(InvalidSubject):
        names.check_group(name)


def test_prefixes():
    assert names.check_prefix("x.$SRV") == "x.$SRV"
    for prefix in ["", "a.*", "a b"]:
        with pytest.raises(InvalidSubject):
            names.check_prefix(prefix)


@pytest.mark.rule("SERVICE-6", "SERVICE-7")
def test_join():
    assert [names.join(*pair) for pair in [("", "a"), ("g", "a"), ("g", ""), ("", "")]] == [
        "a",
        "g.a",
        "g",
        "",
    ]


@pytest.mark.rule("SERVICE-8", "SERVICE-9")
@pytest.mark.parametrize(
    ("own", "inherited", "chosen"),
    [("", "q", "q"), ("x", "q", "x"), (None, "q", None), ("", None, None), ("x", None, "x")],
)
def test_queue_groups(own, inherited, chosen):
    assert names.choose_queue(own, inherited) == chosen


@pytest.mark.parametrize("queue", [" ", "a b", 1, "a\r"])
def test_queue_groups_that_are_refused(queue):
    with pytest.raises(InvalidSubject):
        names.choose_queue(queue, "q")


@pytest.mark.rule("SERVICE-11")
def test_the_subjects_of_an_instance():
    assert names.monitor_subjects("$SRV", "PING", "s", "1") == [
        "$SRV.PING",
        "$SRV.PING.s",
        "$SRV.PING.s.1",
    ]
    assert names.monitor_subject("x", "STATS", "s") == "x.STATS.s"


@pytest.mark.rule("SERVICE-25")
def test_an_id_needs_a_name():
    with pytest.raises(InvalidValue, match=r"id without a name: '1' \(SERVICE-25\)"):
        names.monitor_subject("$SRV", "PING", "", "1")
    with pytest.raises(InvalidName):
        names.monitor_subject("$SRV", "PING", "a.b")
    with pytest.raises(InvalidSubject):
        names.monitor_subject("$SRV", "PING", "a", "*")
