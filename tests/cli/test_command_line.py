"""The tree of commands: help, completion, exit codes."""

from __future__ import annotations

import subprocess

import pytest

from jetstream import KeyValueConfig, ObjectStoreConfig
from jetstream.blocking import JetStream
from jetstream.config import ConsumerConfig, StreamConfig
from jetstream.tools.cli.completion import candidates
from jetstream.tools.cli.exits import CODES
from jetstream.tools.cli.main import build
from natsproto.adapters.blocking import connect
from natsproto.cli import exits
from natsproto.cli.commands import Commands
from tests.cli.programs import Program


def leaves(place, path=()):
    for name, entry in place.entries.items():
        if isinstance(entry, Commands):
            yield from leaves(entry, (*path, name))
        else:
            yield (*path, name), entry


LEAVES = list(leaves(build()))


@pytest.mark.parametrize(("path", "parser"), LEAVES, ids=["-".join(path) for path, _ in LEAVES])
def test_every_command_has_help_and_the_options_of_all(path, parser, run):
    done = run(*path, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: natsproto {' '.join(path)}")
    assert parser.description.split(".")[0] in " ".join(done.out.split())
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert {"--json", "--server", "--context", "--timeout", "--domain"} <= flags


def test_the_commands_are_described_in_sentences():
    for path, parser in LEAVES:
        assert parser.description.endswith("."), path
        for action in parser._actions:
            assert action.help, (path, action.dest)


@pytest.mark.rule("D-CLI-8")
@pytest.mark.parametrize(
    ("path", "cls", "given"),
    [
        (("stream", "create"), StreamConfig, {"name"}),
        (("stream", "edit"), StreamConfig, {"name"}),
        (("consumer", "create"), ConsumerConfig, {"name", "durable_name"}),
        (("kv", "create"), KeyValueConfig, {"bucket"}),
        (("object", "create"), ObjectStoreConfig, {"bucket"}),
    ],
)
def test_every_field_has_an_option(path, cls, given):
    parser = dict(LEAVES)[path]
    flags = {flag for action in parser._actions for flag in action.option_strings}
    names = {field.name for field in cls.FIELDS} - given
    assert {"--" + name.replace("_", "-") for name in names} <= flags


def test_a_missing_library_is_named_with_its_extra(js_server, tmp_path):
    """Without rich, and on a terminal, only the live view cannot work."""
    assert run_without_rich(js_server, tmp_path, "info") == exits.OK
    assert (
        run_without_rich(js_server, tmp_path, "consume", "LIBRARY", "c", text="natsproto[cli]")
        == exits.USAGE
    )


def run_without_rich(server, home, *args, text=""):
    with connect(server.url) as client:
        js = JetStream(client)
        js.create_or_update_stream(name="LIBRARY", subjects=["library"])
        js.create_or_update_consumer("LIBRARY", name="c")
        code = (
            "import sys; sys.modules['rich'] = None; sys.modules['rich.live'] = None\n"
            "sys.stdout.isatty = lambda: True\n"
            "from jetstream.tools.cli.main import main; sys.exit(main(sys.argv[1:]))"
        )
        done = Program(home, "-c", code, NATS_URL=server.url).run(*args)
        js.delete_stream("LIBRARY")
    assert text in done.err
    assert "Traceback" not in done.err
    return done.code


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {"pub", "stream", "kv"}),
        (["str"], {"stream"}),
        (["stream", ""], {"ls", "info", "create"}),
        (["stream", "create", "X", "--max-a"], {"--max-age"}),
        (["--server", "x", "kv", "put", "--new"], {"--new"}),
        (["stream", "ls", "--js"], {"--json"}),
        (["stream", "add", "X", "--max-a"], {"--max-age"}),
    ],
)
def test_completion(words, found):
    assert found <= set(candidates(build(), words))
    assert all(each.startswith(words[-1] if words else "") for each in candidates(build(), words))


def test_contexts_are_completed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nats" / "context").mkdir(parents=True)
    (tmp_path / "nats" / "context" / "prod.json").write_text("{}")
    assert run("completion", "words", "--", "stream", "ls", "--context", "p").out == "prod\n"


MISTAKES = [
    (["strem", "ls"], "natsproto: 'strem' is not a command; did you mean 'stream'?"),
    (["stream", "zzz"], "natsproto stream: 'zzz' is not a command"),
    (["stream", "ls", "--no-such"], "natsproto: unrecognized arguments: --no-such"),
    (
        ["stream", "create", "X", "--storage", "fil"],
        "natsproto stream create: argument --storage: 'fil' is not one of file, memory; "
        "did you mean 'file'?",
    ),
    (["pub"], "natsproto pub: the following arguments are required: subject"),
]


@pytest.mark.rule("D-CLI-9")
@pytest.mark.parametrize(("args", "text"), MISTAKES)
def test_mistakes_are_reported_in_a_few_lines(run, args, text):
    done = run(*args)
    assert done.code == exits.USAGE
    *usage, what, help = done.err.splitlines()
    assert what == text
    assert help == f"try: {text.partition(':')[0]} --help"
    assert len(usage) <= 2


@pytest.mark.rule("D-CLI-9")
def test_names_of_the_command_nats(run):
    for args in (["add", "ALIAS", "--subjects", "alias"], ["update", "ALIAS", "--max-msgs", "5"]):
        assert run("stream", *args).code == 0
    assert "ALIAS" in run("stream", "list", "--names").out
    assert run("stream", "rm", "ALIAS", "--force").code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_of_completion(run, shell):
    assert "natsproto completion words" in run("completion", shell).out


def test_bash_accepts_its_script(run):
    script = run("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script.encode(), check=True)


def test_every_code_has_a_meaning_and_every_error_a_code():
    assert {code for _, code in CODES} < set(exits.MEANINGS)
    for kind, code in CODES:
        assert exits.code_of(kind.__new__(kind), CODES) == code, kind


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        exits.code_of(ZeroDivisionError(), CODES)
