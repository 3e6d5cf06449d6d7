"""Options that only adapters can check, and libraries that are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import natsproto.adapters.asyncio
import natsproto.adapters.blocking
import natsproto.adapters.micropython
import natsproto.adapters.threads
import natsproto.adapters.trio
from natsproto.adapters.driver import make_connection
from natsproto.errors import InvalidValue

ADAPTERS = [
    natsproto.adapters.asyncio,
    natsproto.adapters.blocking,
    natsproto.adapters.threads,
    natsproto.adapters.trio,
]
NOBODY = "nats://127.0.0.1:1"  # a dial would be a ConnectFailed


@pytest.mark.rule("D-OPT-16")
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("tls", [{"ca": "hush.pem"}, ["hush"], object(), Path("hush")])
def test_a_tls_context_of_a_wrong_type_is_rejected_before_dialing(adapter, tls):
    with pytest.raises(InvalidValue, match=r"tls is not True or an ssl.SSLContext: ") as caught:
        adapter.connect(NOBODY, tls=tls)
    assert type(tls).__name__ in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.rule("D-OPT-20")
@pytest.mark.parametrize(
    "adapter", [*ADAPTERS, natsproto.adapters.micropython], ids=lambda each: each.__name__
)
@pytest.mark.parametrize("name", ["host_websocket", "host_signing"])
def test_what_the_adapter_cannot_do_for_its_host_is_rejected(adapter, name):
    text = f"{name} is not for programs: this adapter cannot do it"
    with pytest.raises(InvalidValue, match=text):
        adapter.connect("ws://127.0.0.1:1", **{name: True})


@pytest.mark.rule("D-OPT-20")
def test_an_adapter_says_what_it_can_do_for_its_host():
    options = {"host_websocket": True, "host_signing": False}
    connection = make_connection("wss://a", options, host=("host_websocket",))
    assert connection.options.host_websocket


IMPORTS = [  # statement, missing library, what the error says
    ("import natsproto.adapters.anyio", "anyio", "pip install 'natsproto[anyio]'"),
    ("import natsproto.adapters.trio", "trio", "pip install 'natsproto[trio]'"),
    ("import natsproto.adapters.pyodide", "js", "needs Pyodide, in a browser or under Node"),
    ("import jetstream.spark", "pyspark", "pip install 'natsproto[spark]'"),
    ("import jetstream; jetstream.spark", "pyspark", "pip install 'natsproto[spark]'"),
    ("from jetstream import spark", "pyspark", "pip install 'natsproto[spark]'"),
]


@pytest.mark.rule("D-OPT-17")
@pytest.mark.parametrize(("statement", "library", "hint"), IMPORTS)
@pytest.mark.parametrize("kind", ["ImportError", "natsproto.MissingExtra"])
def test_a_missing_library_is_named_with_its_extra(statement, library, hint, kind):
    code = f"""
import sys
import natsproto
sys.modules[{library!r}] = None
try:
    {statement.replace("; ", chr(10) + "    ")}
except {kind} as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert hint in done.stdout


def test_a_module_that_does_not_exist_is_an_attribute_error():
    import jetstream

    assert not hasattr(jetstream, "sparkle")
