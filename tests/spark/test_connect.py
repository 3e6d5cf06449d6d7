"""Connections: credentials, TLS, files, one for each set of options and process."""

from __future__ import annotations

import os
import traceback

import pytest

from jetstream.blocking import JetStream
from jetstream.spark.compat import LIMITED
from jetstream.spark.connect import client, find_file, forget, jetstream
from jetstream.spark.options import BATCH, read_options
from jetstream.spark.queries import StreamQueries
from natsproto.adapters.blocking import connect
from natsproto.auth import nkeys
from natsproto.errors import AuthorizationFailed, ConnectFailed, InvalidValue, NatsError
from natsproto.testing import Server, jwts
from natsproto.testing.certificates import Certificates
from tests.core import ROOT
from tests.spark.support import check_soon, make, query_reader, sequences

SECRET = "hunter2"


def settings(server, **options):
    return read_options({"servers": server.url, "stream": "S", **options}, BATCH)


def answers(made) -> bool:
    """Return whether the server accepts these options."""
    client(made).flush()
    forget(made)
    return True


def test_a_connection_is_kept_for_the_same_options(server):
    one = client(settings(server))
    assert client(settings(server, fetchSize="7")) is one  # it makes no difference to it
    other = client(settings(server, inboxPrefix="_MINE"))
    assert other is not one
    assert one.info.client_id != other.info.client_id
    one.close()
    assert client(settings(server)) is not one  # it was closed
    forget(settings(server))
    forget(settings(server))
    forget(settings(server, inboxPrefix="_MINE"))


def test_connections_and_consumers_have_the_name_of_the_client(server, js, name):
    make(js, name, 30)
    reader = query_reader(
        server, stream=name, startingOffsets="earliest", clientName="billing", fetchSize=10
    )
    start = reader.initialOffset()
    end = reader.latestOffset(start, None) if LIMITED else reader.latestOffset()
    [part] = reader.partitions(start, end)
    rows = reader.read(part)
    next(rows)
    [consumer] = [each for each in js.stream(name).consumers() if "billing" in each.name]
    assert consumer.name.startswith("billing-")
    assert consumer.config.metadata["spark.process"] == "driver"
    rows.close()
    names = [each.get("name") for each in server.monitor("/connz")["connections"]]
    assert "billing" in names
    forget(reader.settings)


def test_servers_before_2_10_get_no_metadata(server, js, name, monkeypatch):
    """They ignore it, and the client would reject it."""
    make(js, name, 3)
    made = settings(server, stream=name)
    monkeypatch.setattr(client(made).info, "version", "2.9.10")
    consumer = StreamQueries(made, name).consumer(1, [])
    assert "spark.process" not in (consumer.cached_info.config.metadata or {})
    forget(made)


def test_a_forked_child_opens_its_own_connection(server):
    mine = client(settings(server)).info.client_id
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            theirs = client(settings(server))
            theirs.flush()
            os.write(writing, b"%d" % theirs.info.client_id)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert int(os.read(reading, 100)) != mine
    client(settings(server)).flush()
    assert client(settings(server)).info.client_id == mine
    os.close(reading)
    os.close(writing)


def test_user_password_and_token():
    with Server(config={"authorization": {"user": "joe", "password": SECRET}}) as server:
        assert answers(settings(server, user="joe", password=SECRET))
        with pytest.raises(AuthorizationFailed) as caught:
            client(settings(server, user="joe", password="wrong-" + SECRET))
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    with Server(config={"authorization": {"token": SECRET}}) as server:
        assert answers(settings(server, token=SECRET))
        with pytest.raises(AuthorizationFailed):
            client(settings(server))


def test_the_error_for_an_unreachable_server_shows_no_password(server):
    with pytest.raises(NatsError) as caught:
        client(settings(server, servers="nats://127.0.0.1:1", user="joe", password=SECRET))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_nkeys(tmp_path):
    seed = nkeys.encode_seed("U", bytes(range(32)))
    path = tmp_path / "user.nk"
    path.write_text(seed + "\n")
    users = [{"nkey": nkeys.public_key(seed)}]
    with Server(config={"authorization": {"users": users}}) as server:
        assert answers(settings(server, nkeySeedFile=str(path)))


def test_creds(tmp_path):
    path = tmp_path / "user.creds"
    path.write_text(jwts.creds(jwts.user_jwt(jwts.USER), jwts.USER))
    with Server(config=jwts.server_config()) as server:
        assert answers(settings(server, credsFile=str(path)))


def test_tls(tmp_path):
    certificates = Certificates(tmp_path)
    ca = str(tmp_path / "ca.pem")
    block = certificates.server("127.0.0.1", verify=True)
    certificates.client(certificate=True)  # writes the files
    ours = {"tlsCert": str(tmp_path / "client.pem"), "tlsKey": str(tmp_path / "client.key")}
    with Server(config={"tls": block}) as server:
        assert answers(settings(server, tlsCa=ca, **ours))
        with pytest.raises(NatsError):
            client(settings(server, tlsCa=ca))  # the server wants to see a certificate
        with pytest.raises(ConnectFailed, match="CERTIFICATE_VERIFY_FAILED"):
            client(settings(server, tlsCa=str(tmp_path / "stranger.pem"), **ours))
        with pytest.raises(ConnectFailed, match="CERTIFICATE_VERIFY_FAILED"):
            client(settings(server, tls="true", **ours))  # the system does not trust it
    first = {**certificates.server("127.0.0.1"), "handshake_first": True}
    with Server(config={"tls": first}) as server:
        assert answers(settings(server, tlsCa=ca, tlsFirst="true"))


def test_no_credentials_are_sent_without_the_required_tls(server):
    with pytest.raises(ConnectFailed, match="TLS is required"):
        client(settings(server, tls="true", token=SECRET))


def test_missing_files_and_invalid_certificates(server, tmp_path):
    for name in ("credsFile", "nkeySeedFile", "tlsCa"):
        with pytest.raises(InvalidValue, match=f"option {name}: file '/no/such' does not exist"):
            client(settings(server, **{name: "/no/such"}))
    odd = tmp_path / "odd.pem"
    odd.write_text("nothing")
    with pytest.raises(InvalidValue, match="options tlsCa, tlsCert, tlsKey"):
        client(settings(server, tlsCa=str(odd)))


def test_a_file_can_be_distributed_with_the_job(spark, tmp_path, server):
    path = tmp_path / "shipped.creds"
    path.write_text("x")
    spark.sparkContext.addFile(str(path))
    made = settings(server, credsFile="shipped.creds")
    with open(find_file(made, "credsFile")) as file:
        assert file.read() == "x"


def test_domains_and_prefixes():
    with Server(jetstream=True, config={"jetstream": {"domain": "hub"}}) as server:
        for options in ({}, {"domain": "hub"}, {"apiPrefix": "$JS.hub.API"}):
            assert jetstream(settings(server, **options)).account_info().domain == "hub"
        with pytest.raises(NatsError, match=r"no JetStream answers to \$JS\.no\.API"):
            jetstream(settings(server, domain="no")).account_info()
        forget(settings(server))


READ = ["$JS.API.STREAM.INFO.S", "$JS.API.STREAM.MSG.GET.S"]
PULL = [f"$JS.API.CONSUMER.{each}.S.>" for each in ("CREATE", "MSG.NEXT", "DELETE")]
ALLOWED = {  # as docs/spark.md has it
    "pull": [*READ, *PULL],
    "direct": [*READ, "$JS.API.DIRECT.GET.S"],
    "purge": [*READ, *PULL, "$JS.API.STREAM.PURGE.S"],
    "consume": ["$JS.API.CONSUMER.INFO.S.C", "$JS.API.CONSUMER.MSG.NEXT.S.C", "$JS.ACK.S.C.>"],
}
MODES = {
    "pull": {"subject": "S.0", "maxMessagesPerTrigger": "3", "startingOffsets": "earliest"},
    "direct": {"fetchMode": "direct", "startingTimestamp": "2020-01-01T00:00:00Z"},
    "purge": {"onCommit": "purge", "startingOffsets": "earliest"},
    "consume": {"mode": "consume", "consumer": "C"},
}


def test_the_documentation_lists_these_permissions():
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    for subject in {subject for subjects in ALLOWED.values() for subject in subjects}:
        assert f"`{subject}`" in page


@pytest.mark.skipif(not LIMITED, reason="has readers with a limit: PySpark 4.2")
def test_these_permissions_are_sufficient():
    users = [{"user": "admin", "password": "x"}]
    for name, subjects in ALLOWED.items():
        allowed = {"publish": subjects, "subscribe": ["_INBOX.>"]}
        users.append({"user": name, "password": "x", "permissions": allowed})
    config = {"authorization": {"users": users}}
    with (
        Server(jetstream=True, config=config) as server,
        connect(server.url, user="admin", password="x") as admin,
    ):
        js = JetStream(admin)
        make(js, "S", 6, allow_direct=True)
        js.create_consumer("S", durable_name="C")
        for name in ("consume", "pull", "direct", "purge"):
            options = {"stream": "S", "user": name, "password": "x", **MODES[name]}
            reader = query_reader(server, **options)
            start = reader.initialOffset()
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            found = sequences(reader, reader.partitions(start, end))
            assert found == ([1, 2, 3] if name == "pull" else [1, 2, 3, 4, 5, 6])
            reader.commit(end)
        check_soon(lambda: js.consumer("S", "C").cached_info.ack_floor.stream_seq, 6)
        assert js.stream("S").cached_info.state.messages == 0
