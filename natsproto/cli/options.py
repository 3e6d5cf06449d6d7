"""The options that every command has, and the arguments of connect() that they stand for.

They can be given before or after the name of the command. The environment variables are those of
the command `nats`. Without --server and --context, the selected context is used if there is one.
"""

from __future__ import annotations

import argparse
import os
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

from natsproto.adapters.contexts import read_seed, selected_context
from natsproto.errors import InvalidValue
from natsproto.options import DEFAULT_SERVER

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

TIMEOUT = 5.0

# Flags, the environment variable with the default, and arguments of add_argument.
CONNECTION: list[tuple[list[str], str, dict[str, Any]]] = [
    (
        ["-s", "--server"],
        "NATS_URL",
        {"metavar": "URL", "help": f"servers, separated by commas (default {DEFAULT_SERVER})"},
    ),
    (["--context"], "NATS_CONTEXT", {"metavar": "NAME", "help": "settings of the command nats"}),
    (["--user"], "NATS_USER", {"metavar": "NAME", "help": "user name"}),
    (["--password"], "NATS_PASSWORD", {"metavar": "TEXT", "help": "password of the user"}),
    (["--token"], "NATS_TOKEN", {"metavar": "TEXT", "help": "authentication token"}),
    (["--creds"], "NATS_CREDS", {"metavar": "FILE", "help": "credentials: a JWT and a seed"}),
    (["--nkey"], "NATS_NKEY", {"metavar": "FILE", "help": "seed of an nkey"}),
    (["--tls"], "", {"action": "store_true", "help": "require TLS"}),
    (["--tlsfirst"], "", {"action": "store_true", "help": "start TLS before the server's INFO"}),
    (["--tlscert"], "NATS_CERT", {"metavar": "FILE", "help": "certificate of the client"}),
    (["--tlskey"], "NATS_KEY", {"metavar": "FILE", "help": "private key of the client"}),
    (["--tlsca"], "NATS_CA", {"metavar": "FILE", "help": "certificates to trust"}),
    (["--inbox-prefix"], "", {"metavar": "SUBJECT", "help": "first tokens of reply subjects"}),
    (
        ["--timeout"],
        "NATS_TIMEOUT",
        {
            "metavar": "SECONDS",
            "type": "seconds",
            "help": f"how long to wait for a connection and for each response (default {TIMEOUT})",
        },
    ),
]
OUTPUT: list[tuple[list[str], str, dict[str, Any]]] = [
    (["--json"], "", {"action": "store_true", "help": "print JSON; errors, too, on stderr"}),
]
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FIELDS = ["user", "password", "token", "inbox_prefix"]


def seconds(text: str) -> float:
    """Read a duration: 1.5, 1.5s, 200ms, 2m, 3h or 4d."""
    unit = next((each for each in _UNITS if text.endswith(each)), "")
    number = text[: len(text) - len(unit)]
    try:
        value = float(number) * _UNITS.get(unit, 1.0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"not a duration such as 5, 1.5s, 200ms or 2h: {text!r}")
    return value


def size(text: str) -> int:
    """Read a number of bytes: 512, 64K, 1M or 2G; K is 1024."""
    factor = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}.get(text[-1:].upper(), 1)
    try:
        return int(text if factor == 1 else text[:-1]) * factor
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a size such as 512, 64K or 1M: {text!r}") from None


_TYPES = {"seconds": seconds}


def add_options(
    parser: ArgumentParser, rows: list[tuple[list[str], str, dict[str, Any]]], *, hidden: bool
) -> None:
    """Add options to a parser; hidden ones are accepted after a command but not in its help."""
    group = parser if hidden else parser.add_argument_group("options of all commands")
    for flags, variable, arguments in rows:
        given = dict(arguments)
        if given.get("type") in _TYPES:
            given["type"] = _TYPES[given["type"]]
        if hidden:
            # Without SUPPRESS the default would replace the value from before the command.
            given.update(default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        elif variable:
            given["default"] = os.environ.get(variable) or None
            given["help"] += f"; ${variable}"
        group.add_argument(*flags, **given)


def connect_options(args: Namespace, name: str) -> tuple[str, dict[str, Any]]:
    """Return the servers and the keyword arguments of connect() for a command of this name."""
    options: dict[str, Any] = {"name": name, "connect_timeout": timeout_of(args)}
    options.update((key, getattr(args, key)) for key in _FIELDS if getattr(args, key))
    if args.creds:
        options["creds"] = _readable(args.creds)
    if args.nkey:
        options["nkey_seed"] = partial(read_seed, _readable(args.nkey))
    options.update(_tls(args))
    context = context_of(args)
    if context:
        options["context"] = context
    return args.server or DEFAULT_SERVER, options


def context_of(args: Namespace) -> str:
    """Return the name of the context to use, or ""."""
    return args.context or ("" if args.server else selected_context())  # D-CLI-5


def timeout_of(args: Namespace) -> float:
    """Return the timeout of requests, in seconds."""
    return TIMEOUT if args.timeout is None else max(float(args.timeout), 0.001)


def _tls(args: Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {"tls_first": True} if args.tlsfirst else {}
    if bool(args.tlscert) != bool(args.tlskey):
        raise InvalidValue("--tlscert and --tlskey belong together: one of them is missing")
    if args.tlsca or args.tlscert:
        options["tls"] = tls_context(args.tlsca, args.tlscert, args.tlskey)
    elif args.tls:
        options["tls"] = True
    return options


def tls_context(ca: str | None, cert: str | None, key: str | None) -> ssl.SSLContext:
    """Return a context for TLS as a client, from the paths of files."""
    context = ssl.create_default_context(cafile=ca and _readable(ca))
    if cert and key:
        context.load_cert_chain(_readable(cert), _readable(key))
    return context


def _readable(path: str) -> str:
    """Return the path of a readable file; unlike the error of ssl, this one names the file."""
    with open(path, "rb"):
        return path
