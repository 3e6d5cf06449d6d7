"""One Spark session and one server for all of these tests: a session takes seconds to start."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing import Server
from tests.core import ROOT

pytest.importorskip("pyspark", reason="needs the extra spark")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from jetstream.blocking import Stream

OLDEST_JAVA = 17
# Nothing here runs long enough to pay for Java's best compiler, for collectors of garbage in many
# threads, or for a second look at Spark's own classes: with them, a session and a few short jobs
# take 48 s of CPU instead of 24.
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
_numbers = itertools.count(1)


def java_version() -> int:
    """Return the major version of the Java that Spark would use; 0 if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    if shutil.which(java) is None:
        return 0
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(\d+)', text)
    return int(found[1]) if found else 0


def lean_home(home: Path) -> Path:
    """Link Spark's directory without the zip of its Python code: workers use the installed one.

    Every process compiles code from a zip again, which takes 1.8 s instead of 0.6 s.
    """
    import pyspark

    home.mkdir(parents=True)
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "python":
            (home / path.name).symlink_to(path)
    return home


def start_session(directory: Path, *, remote: bool = False, **settings: str) -> SparkSession:
    """Start a quiet session whose workers run this Python and find this repository.

    A remote session is a client of Spark Connect, and starts the server as well.
    """
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(lean_home(directory / "home"))
    os.environ["SPARK_LAUNCHER_OPTS"] = JAVA
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    master = "local[2, 4]"  # two cores; a task may fail three times
    builder = SparkSession.builder.remote(master) if remote else SparkSession.builder.master(master)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.local.dir": str(directory),
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        **settings,
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from jetstream.spark.compat import LIMITED

    if not LIMITED:
        # PySpark before 4.2 leaves its sockets to the garbage collector.
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(
                    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
                )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    version = java_version()
    if version < OLDEST_JAVA:
        pytest.skip(f"Spark needs Java {OLDEST_JAVA}; here is {version or 'none'}")
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(scope="session")
def js(server: Server) -> Iterator[JetStream]:
    with connect(server.url) as client:
        yield JetStream(client)


@pytest.fixture
def name() -> str:
    """Return a name for a stream, and for the start of its subjects, that no other test uses."""
    return f"S{next(_numbers)}"


# For tests of the sink


@pytest.fixture(scope="module")
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Make Arrow batches small, so that a task has written some rows when it fails."""
    from tests.spark.sinks import SMALL

    spark.conf.set(SMALL, "500")
    yield
    spark.conf.unset(SMALL)


@pytest.fixture
def make(js: JetStream, name: str) -> Callable[..., Stream]:
    """Return a function that creates a stream in memory."""

    def make(**config: Any) -> Stream:
        settings = {"storage": "memory", "allow_direct": True, **config}
        return js.create_stream(name=name, subjects=[f"{name}.>"], **settings)

    return make


@pytest.fixture
def stream(make: Callable[..., Stream]) -> Stream:
    return make(storage="file", allow_atomic=True, allow_msg_ttl=True)


@pytest.fixture
def plain(server: Server, name: str) -> dict[str, str]:
    """Return the options of a write to the stream."""
    return {"servers": server.url, "subject": f"{name}.a"}


@pytest.fixture
def atomic(plain: dict[str, str], name: str) -> dict[str, str]:
    return {**plain, "delivery": "atomic", "stream": name, "markerSubject": f"{name}.mark"}


@pytest.fixture(params=["dedup", "atomic"])
def exact(
    request: pytest.FixtureRequest, plain: dict[str, str], atomic: dict[str, str]
) -> dict[str, str]:
    """Return the options of each delivery that stores every row once."""
    return atomic if request.param == "atomic" else plain


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make readers of queries not wait for new messages."""
    monkeypatch.setattr("jetstream.spark.stream._POLL", 0.0)
    monkeypatch.setattr("jetstream.spark.stream._LONGEST_WAIT", 0.0)
