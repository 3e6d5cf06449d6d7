from __future__ import annotations

import ast
import builtins
import inspect
import pickle

import pytest

from natsproto import errors
from natsproto.errors import LocalError, NatsError, ProtocolError, RemoteError


def tree() -> dict[str, str]:
    """Return class and base, as the module's docstring draws them: two spaces for each level."""
    bases: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if line.startswith("    "):
            depth = (len(line) - len(line.lstrip()) - 4) // 2
            path[depth:] = [line.split()[0]]
            bases[path[-1]] = path[-2] if depth else "Exception"
    return bases


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    classes = [
        node for node in ast.parse(inspect.getsource(errors)).body if isinstance(node, ast.ClassDef)
    ]
    assert {node.name: ast.unparse(node.bases[0]) for node in classes} == tree()
    assert all(ast.get_docstring(node) for node in classes)


def test_every_error_is_either_ours_or_the_peers():
    ours, theirs = set(), set()
    for name in tree():
        error = getattr(errors, name)
        assert issubclass(error, NatsError)
        ours.update([error] if issubclass(error, LocalError) else [])
        theirs.update([error] if issubclass(error, RemoteError) else [])
    assert not ours & theirs
    assert len(ours | theirs) == len(tree()) - 1  # all but the root


BUILT_IN = {
    errors.InvalidSubject: ValueError,
    errors.InvalidName: ValueError,
    errors.InvalidHeader: ValueError,
    errors.InvalidValue: ValueError,
    errors.PayloadTooLarge: ValueError,
    errors.MissingExtra: ImportError,
    errors.TimeoutExpired: TimeoutError,
    errors.MessagesUnconfirmed: TimeoutError,
    errors.ConnectionLost: ConnectionError,
    errors.ConnectionClosed: ConnectionError,
    errors.ConnectFailed: ConnectionError,
}


@pytest.mark.rule("D-ERR-10")
def test_some_errors_are_built_in_ones_as_well():
    for name in tree():
        error = getattr(errors, name)
        assert issubclass(error, (ValueError, ImportError, OSError)) == (error in BUILT_IN), name
        assert issubclass(error, BUILT_IN.get(error, NatsError)), name


@pytest.mark.rule("D-ERR-10")
def test_errors_with_two_bases_have_the_usual_text():
    error = errors.TimeoutExpired("no answer in time")
    assert (str(error), error.args, error.errno) == ("no answer in time", error.args, None)
    assert repr(error) == "TimeoutExpired('no answer in time')"
    assert str(errors.MissingExtra("pip install x", "D-WS-9")) == "pip install x (D-WS-9)"
    assert str(errors.InvalidValue("a is b", "D-OPT-9")) == "a is b (D-OPT-9)"


@pytest.mark.rule("D-ERR-10")
def test_without_these_built_ins_errors_have_one_base():
    """As on MicroPython."""
    missing = ("TimeoutError", "ConnectionError")
    known = {name: value for name, value in vars(builtins).items() if name not in missing}
    module = {"__builtins__": known, "__name__": "natsproto.errors", "__package__": "natsproto"}
    source = inspect.getsource(errors)
    exec(compile(source, inspect.getfile(errors), "exec", dont_inherit=True), module)
    for name in tree():
        error = module[name]
        assert not issubclass(error, (ValueError, ImportError, OSError)), name
        assert issubclass(error, module["NatsError"])
    assert str(module["ConnectFailed"]([])) == "no server could be reached: no servers left to try"


@pytest.mark.parametrize(
    ("error", "message", "rule"),
    [
        (LocalError("subject is empty", "SUBJ-4"), "subject is empty (SUBJ-4)", "SUBJ-4"),
        (LocalError("no rule"), "no rule", ""),
    ],
)
def test_a_local_error_names_its_rule(error, message, rule):
    assert str(error) == message
    assert error.rule == rule


@pytest.mark.rule("D-WIRE-17")
def test_a_protocol_error_names_the_problem_and_its_offset():
    error = ProtocolError("unknown operation", 174, b"FOO bar\r")
    assert str(error) == r"unknown operation at byte 174: b'FOO bar\r'"
    assert (error.reason, error.offset, error.excerpt) == ("unknown operation", 174, b"FOO bar\r")
    assert error.frames == []


@pytest.mark.parametrize(
    ("error", "message", "attributes"),
    [
        (
            errors.NoResponders("orders.new"),
            "no responders on subject 'orders.new'",
            {"subject": "orders.new"},
        ),
        (
            errors.PermissionDenied("Permissions Violation ...", "a.b", "q"),
            "Permissions Violation ...",
            {"subject": "a.b", "queue": "q"},
        ),
        (errors.PermissionDenied("no"), "no", {"subject": "", "queue": ""}),
        (errors.TooManyReplies("too many", []), "too many", {"replies": []}),
        (
            errors.ConnectFailed([]),
            "no server could be reached: no servers left to try",
            {"errors": []},
        ),
        (
            errors.MessagesUnconfirmed(3, 2),
            "the client was closed with unconfirmed messages: 3 not sent, 2 sent and in doubt",
            {"unsent": 3, "in_doubt": 2},
        ),
        (
            errors.ServerFailed("Stale Connection"),
            "server error: Stale Connection",
            {"text": "Stale Connection"},
        ),
    ],
)
def test_an_error_contains_the_problem_and_the_values(error, message, attributes):
    assert str(error) == message
    assert {name: getattr(error, name) for name in attributes} == attributes


def test_a_failed_connect_lists_every_server():
    tried = [("nats://a:4222", OSError("refused")), ("nats://b:4222", TimeoutError("too slow"))]
    error = errors.ConnectFailed(tried)
    assert str(error) == (
        "no server could be reached: nats://a:4222: refused; nats://b:4222: too slow"
    )
    assert error.errors == tried


@pytest.mark.rule("D-CALLOUT-5")
def test_a_rejected_user_has_a_reason():
    for error in (first := errors.UserRejected("left"), pickle.loads(pickle.dumps(first))):
        assert (str(error), error.reason) == ("user rejected: left", "left")
        assert isinstance(error, errors.RemoteError)
