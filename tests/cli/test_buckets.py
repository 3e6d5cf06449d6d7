"""kv and object, each command on a real server."""

from __future__ import annotations

import json

import pytest

from natsproto.cli import exits
from tests.cli.programs import Program


@pytest.fixture
def command(js_server, tmp_path):
    return Program(tmp_path, "-m", "jetstream.tools.cli", NATS_URL=js_server.url)


def test_the_life_of_a_bucket(run):
    done = run("kv", "create", "cfg", "--history", "3", "--ttl", "1h", "--json")
    assert done.code == 0, done.err
    assert done.json["history"] == 3
    assert run("kv", "put", "cfg", "a.b", "one").out == "revision 1\n"
    assert run("kv", "put", "cfg", "a.b", stdin=b"two").out == "revision 2\n"
    assert run("kv", "put", "cfg", "new", "x", "--new", "--json").json == {"revision": 3}
    assert run("kv", "put", "cfg", "new", "y", "--new").code == exits.REFUSED
    assert run("kv", "put", "cfg", "new", "y", "--last", "3").code == 0
    assert run("kv", "put", "cfg", "new", "z", "--last", "3").code == exits.REFUSED
    assert run("kv", "get", "cfg", "a.b", "--raw").out == "two"
    assert run("kv", "get", "cfg", "a.b", "--revision", "1", "--json").json["value"] == "one"
    assert run("kv", "get", "cfg", "a.b").out.startswith("PUT cfg a.b = two  (revision 2, 20")
    assert run("kv", "get", "cfg", "nothing").code == exits.NOT_FOUND
    assert run("kv", "ls", "cfg").out == "a.b\nnew\n"
    assert run("kv", "ls", "cfg", "--filter", "a.*", "--json").json == ["a.b"]
    assert "cfg" in run("kv", "ls").out
    assert run("kv", "del", "cfg", "new").code == 0
    assert run("kv", "get", "cfg", "new").code == exits.NOT_FOUND
    operations = [each["operation"] for each in run("kv", "history", "cfg", "new", "--json").lines]
    assert operations == ["PUT", "PUT", "DEL"]
    assert run("kv", "purge", "cfg", "new").code == 0
    assert run("kv", "history", "cfg", "new").out.startswith("PURGE cfg new  (revision")
    assert "history: 3\n" in run("kv", "info", "cfg").out
    assert run("kv", "edit", "cfg", "--history", "4").code == 0
    assert run("kv", "info", "cfg", "--json").json["config"]["history"] == 4
    assert run("kv", "rm", "cfg").code == exits.USAGE
    assert run("kv", "rm", "cfg", "--force").code == 0
    assert run("kv", "info", "cfg").code == exits.NOT_FOUND


def test_watching_keys(run, command):
    assert "history: 1\n" in run("kv", "create", "seen").out  # the default of the server
    assert run("kv", "put", "seen", "a", "1").code == 0
    with command.start("kv", "watch", "seen", "--count", "2", "--json") as watch:
        assert json.loads(watch.line())["value"] == "1"
        assert run("kv", "del", "seen", "a").code == 0
        assert json.loads(watch.line())["operation"] == "DEL"
        assert watch.wait() == 0
    with command.start("kv", "watch", "seen", "a", "--updates-only") as watch:
        watch.line("err", "watching")
        assert run("kv", "put", "seen", "a", "2").code == 0
        assert watch.line().startswith("PUT seen a = 2")
        assert watch.interrupt() == exits.OK
    assert run("kv", "rm", "seen", "--force").code == 0


def test_the_life_of_a_store(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = bytes(range(256)) * 2000
    source = tmp_path / "source.bin"
    source.write_bytes(data)
    assert run("object", "create", "files", "--description", "of a test").code == 0
    done = run("object", "put", "files", str(source), "--description", "bytes", "--json")
    assert done.code == 0, done.err
    assert (done.json["name"], done.json["size"]) == ("source.bin", len(data))
    assert run("object", "put", "files", "-", "--name", "dir/note", stdin=b"text").code == 0
    assert "source.bin" in run("object", "ls", "files").out
    assert "files" in run("object", "ls").out
    done = run("object", "get", "files", "source.bin")
    assert done.code == exits.USAGE  # it exists
    assert "source.bin" in done.err
    assert run("object", "get", "files", "source.bin", "--force").code == 0
    assert source.read_bytes() == data
    assert run("object", "get", "files", "dir/note", "--json").json["file"] == "note"
    assert (tmp_path / "note").read_text() == "text"
    assert run("object", "get", "files", "dir/note", "-o", "-").out == "text"
    assert run("object", "get", "files", "nothing").code == exits.NOT_FOUND
    assert "description: bytes" in run("object", "info", "files", "source.bin").out
    assert run("object", "put", "files", "/no/such/file").code == exits.USAGE
    assert run("object", "rm", "files", "dir/note", "--force").code == 0
    assert [each["name"] for each in run("object", "ls", "files", "--json").json] == ["source.bin"]
    assert run("object", "rm-store", "files", "--force").code == 0
    assert run("object", "ls", "files").code == exits.NOT_FOUND


def test_watching_objects(run, command):
    assert run("object", "create", "watched").code == 0
    assert run("object", "put", "watched", "-", "--name", "a", stdin=b"x").code == 0
    with command.start("object", "watch", "watched", "--count", "2") as watch:
        assert watch.line().startswith("a: 1 B")
        assert run("object", "rm", "watched", "a", "--force").code == 0
        assert watch.line().startswith("a: deleted")
        assert watch.wait() == 0
    assert run("object", "rm-store", "watched", "--force").code == 0
