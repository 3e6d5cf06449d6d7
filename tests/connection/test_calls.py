"""The types in calls.py are those of the methods that a Connection binds."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from natsproto.connection import calls
from tests.connection.support import Wire

COMMANDS = {
    "PublishCall": "publish",
    "SubscribeCall": "subscribe",
    "UnsubscribeCall": "unsubscribe",
    "RequestCall": "start_request",
    "GatherCall": "start_gather",
}


def as_text(function: ast.stmt) -> str:
    """Return parameters and result of a method, without `self`."""
    assert isinstance(function, ast.FunctionDef)
    assert function.returns is not None
    del function.args.args[0]
    return f"{ast.unparse(function.args)} -> {ast.unparse(function.returns)}"


def signatures() -> dict[str, str]:
    """Return the signature of each class of calls.py."""
    classes = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(calls)))
        if isinstance(node, ast.ClassDef)
    ]
    return {node.name: as_text(node.body[-1]) for node in classes}


def test_every_type_belongs_to_a_command():
    assert set(signatures()) == set(COMMANDS)
    assert not [each for each in vars(calls).values() if inspect.isclass(each)]


@pytest.mark.parametrize(("name", "command"), COMMANDS.items())
def test_signatures(name, command):
    method = getattr(Wire().connection, command)
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    assert signatures()[name] == as_text(function)
