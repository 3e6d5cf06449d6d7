"""stream and consumer, each command on a real server."""

from __future__ import annotations

import json

import pytest

from natsproto.cli import exits


@pytest.fixture
def orders(run):
    """Create a stream with three messages, and delete it at the end."""
    run("stream", "rm", "ORDERS", "--force")
    assert run("stream", "create", "ORDERS", "--subjects", "orders.>").code == 0
    for number in (1, 2, 3):
        assert run("req", f"orders.{number}", f"order {number}", "-H", f"N: {number}").code == 0
    yield "ORDERS"
    run("stream", "rm", "ORDERS", "--force")


@pytest.mark.rule("D-CLI-6")
def test_the_life_of_a_stream(run):
    done = run(
        *["stream", "create", "LIFE", "--subjects", "life.a", "life.b", "--max-age", "1h"],
        *["--max-bytes", "1M", "--storage", "memory", "--metadata", "k=v", "--metadata", "w=x"],
        *["--allow-direct", "--json"],
    )
    assert done.code == 0, done.err
    config = done.json["config"]
    assert config["subjects"] == ["life.a", "life.b"]
    assert (config["max_age"], config["max_bytes"]) == (3600 * 10**9, 2**20)
    assert (config["storage"], config["allow_direct"]) == ("memory", True)
    assert config["metadata"].items() >= {"k": "v", "w": "x"}.items()

    done = run("stream", "edit", "LIFE", "--max-age", "2h", "--no-allow-direct")
    assert done.code == 0, done.err
    assert "  max_age: 2h\n" in done.out
    assert run("stream", "info", "LIFE", "--json").json["config"]["subjects"] == [
        "life.a",
        "life.b",
    ]
    assert run("stream", "edit", "LIFE").code == exits.USAGE
    assert run("stream", "create", "LIFE", "--subjects", "other").code == exits.REFUSED

    done = run("stream", "ls")
    assert done.out.splitlines()[0].split() == [
        *["NAME", "STORAGE", "MESSAGES", "SIZE", "CONSUMERS", "SUBJECTS"]
    ]
    assert "LIFE  memory" in done.out
    assert run("stream", "ls", "--subject", "life.a", "--names").out == "LIFE\n"
    assert run("stream", "ls", "--subject", "nothing", "--json").json == []

    refused = run("stream", "rm", "LIFE")
    assert refused.code == exits.USAGE
    assert "--force" in refused.err
    assert run("stream", "rm", "LIFE", "--force").out == "deleted stream LIFE\n"
    assert run("stream", "info", "LIFE").code == exits.NOT_FOUND


@pytest.mark.rule("D-CLI-6")
def test_a_question_on_a_terminal(run):
    assert run("stream", "create", "ASKED", "--subjects", "asked").code == 0
    done = run("stream", "rm", "ASKED", terminal=True, stdin=b"no\n")
    assert done.code == exits.USAGE
    assert done.err == (
        "Delete stream ASKED with all its messages? [y/N] natsproto: nothing was done\n"
    )
    assert run("stream", "info", "ASKED").code == 0
    assert run("stream", "rm", "ASKED", terminal=True, stdin=b"y\n").code == 0
    assert run("stream", "info", "ASKED").code == exits.NOT_FOUND


def test_a_configuration_from_a_file(run, tmp_path):
    made = run("stream", "create", "FILED", "--subjects", "filed", "--max-msgs", "7", "--json")
    path = tmp_path / "stream.json"
    path.write_text(made.out)
    assert run("stream", "rm", "FILED", "--force").code == 0
    done = run("stream", "create", "FILED", "--config", str(path), "--max-msgs", "8", "--json")
    assert done.json["config"]["max_msgs"] == 8
    assert done.json["config"]["subjects"] == ["filed"]
    assert run("stream", "rm", "FILED", "--force").code == 0
    path.write_text("not JSON")
    assert run("stream", "create", "FILED", "--config", str(path)).code == exits.USAGE


def test_messages_of_a_stream(run, orders):
    done = run("stream", "get", orders, "2")
    assert done.out.startswith("[2] orders.2: 7 bytes, stored 20")
    assert done.out.endswith("\nN: 2\norder 2\n")
    assert run("stream", "get", orders, "--last-for", "orders.*", "--raw").out == "order 3"
    assert run("stream", "get", orders, "2", "--next-for", "orders.*", "--json").json["seq"] == 2
    assert run("stream", "get", orders, "9").code == exits.NOT_FOUND
    seen = run("stream", "view", orders, "--seq", "2", "--json").lines
    assert [each["seq"] for each in seen] == [2, 3]
    assert seen[0]["headers"] == {"N": ["2"]}
    assert run("stream", "view", orders, "--subject", "orders.1", "--raw").out == "order 1\n"
    assert "[3] orders.3: 7 bytes" in run("stream", "view", orders).out
    assert run("stream", "info", orders, "--json").json["state"]["consumer_count"] == 0
    assert run("stream", "subjects", orders, "--json").json == {
        **{"orders.1": 1, "orders.2": 1, "orders.3": 1}
    }
    assert "orders.2" in run("stream", "subjects", orders, "--filter", "orders.2").out
    assert run("stream", "rm-msg", orders, "1", "--force").code == 0
    assert run("stream", "rm-msg", orders, "1", "--force").code == exits.REFUSED
    assert run("stream", "purge", orders, "--keep", "1", "--force", "--json").json == {"purged": 1}
    assert run("stream", "purge", orders).code == exits.USAGE
    assert (
        run("stream", "purge", orders, "--force").out == f"deleted 1 messages of stream {orders}\n"
    )
    assert run("stream", "step-down", orders).code == exits.REFUSED  # not a cluster


def test_the_life_of_a_consumer(run, orders):
    done = run("consumer", "create", orders, "worker", "--ack-wait", "10s", "--json")
    assert done.code == 0, done.err
    assert done.json["config"]["durable_name"] == "worker"
    assert done.json["config"]["ack_wait"] == 10 * 10**9
    assert run("consumer", "create", orders, "short", "--ephemeral").code == 0
    assert sorted(run("consumer", "ls", orders, "--names", "--json").json) == ["short", "worker"]
    assert "worker  pull        3" in run("consumer", "ls", orders).out
    assert run("consumer", "edit", orders, "worker", "--max-deliver", "4").code == 0
    assert "max_deliver: 4" in run("consumer", "info", orders, "worker").out
    assert run("consumer", "edit", orders, "worker").code == exits.USAGE
    assert run("consumer", "info", orders, "nothing").code == exits.NOT_FOUND

    assert run("consumer", "pause", orders, "worker", "10m", "--json").json["paused"] is True
    assert run("consumer", "resume", orders, "worker").code == 0
    assert run("consumer", "step-down", orders, "worker").code == exits.REFUSED
    assert run("consumer", "unpin", orders, "worker", "g").code == exits.REFUSED
    assert run("consumer", "rm", orders, "worker").code == exits.USAGE
    assert run("consumer", "rm", orders, "worker", "--force").code == 0


def test_messages_of_a_consumer(run, orders):
    assert run("consumer", "create", orders, "worker").code == 0
    done = run("consumer", "next", orders, "worker")
    assert done.out == "[1] orders.1: 7 bytes, 2 pending\nN: 1\norder 1\n\n"
    done = run("consumer", "next", orders, "worker", "--settle", "nak", "--raw")
    assert done.out == "order 2\n"
    done = run("consumer", "next", orders, "worker", "--settle", "term", "--json")
    assert (done.json["seq"], done.json["delivered"]) == (2, 2)
    done = run("consumer", "next", orders, "worker", "--count", "5", "--no-wait", "--raw")
    assert (done.code, done.out) == (0, "order 3\n")
    done = run("consumer", "next", orders, "worker", "--timeout", "200ms")
    assert done.code == exits.TIMEOUT
    done = run("consumer", "reset", orders, "worker", "3", "--json")
    assert done.code == 0, done.err
    assert run("consumer", "next", orders, "worker", "--raw").out == "order 3\n"


def test_the_account(run):
    assert run("account", "--json").json["streams"] >= 0
    assert "memory" in run("account").out


def test_a_domain_that_does_not_exist(run):
    assert run("--domain", "elsewhere", "stream", "ls").code == exits.NOT_FOUND


def test_errors_as_json(run):
    done = run("stream", "info", "NOTHING", "--json")
    error = json.loads(done.err)
    assert (error["kind"], error["exit_code"]) == ("StreamNotFound", exits.NOT_FOUND)


@pytest.mark.rule("D-CLI-10")
def test_settings_that_are_not_set_are_left_out(run, orders):
    run("consumer", "create", orders, "c", "--max-deliver", "3")
    stream = run("stream", "info", orders).out.splitlines()
    assert {"  max_msgs: unlimited", "  messages: 3", "  num_deleted: 0"} <= set(stream)
    consumer = run("consumer", "info", orders, "c").out.splitlines()
    assert {"  max_deliver: 3", "  ack_wait: 30s", "num_ack_pending: 0"} <= set(consumer)
    empty = (": 0.0", ": 0s", "total: 0", "max_age", "max_batch", "idle_heartbeat", "reset_seq")
    assert [line for line in stream + consumer if any(each in line for each in empty)] == []


def test_amounts_are_aligned(run, orders):
    heads, row = run("stream", "ls", "--subject", "orders.>").out.splitlines()
    assert heads.index("SIZE") + len("SIZE") == row.index(" B ") + 2
