"""The pages of the reference, which mkdocstrings fills from docstrings.

Every public name of the packages is on one of them, which tests/test_site.py checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jetstream
import natsproto

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = "Client Subscription Replies Health Stats KnownServer MessagePath Headers Msg"
WIRE = "Parser encode Connect Err Info Ok Ping Pong Pub Sub Unsub"
STREAMS = """
    JetStream Stream StreamConfig StreamInfo StreamState StreamSnapshot StoredMsg StoredMsgs Listing
    AccountInfo AccountLimits ApiStats Tier Counter LostData StreamAlternate StreamSource
    StreamSourceInfo SubjectTransform Placement Republish Republished republished ExternalStream
    ClusterInfo DesiredCluster MoveOrigin MoveStatus PeerInfo Timestamp
"""
CONSUMERS = """
    Consumer BoundConsumer OrderedConsumer ConsumerConfig ConsumerInfo ConsumerLimits ConsumerPause
    ConsumerSnapshot PriorityGroupState SequenceInfo SourceConsumer JsMsg Metadata Messages Batch
    Fetch OpenPull PullEvents PullSubscription PushMessages PushEvents Loss
"""
PUBLISHING = "PubAck PublishWindow Publication AtomicBatch FastBatch Scheduled scheduled"
KEY_VALUE = """
    KeyValue KeyValueConfig KeyValueEntry KeyValueStatus KeyWatcher KeyLister InitialEntries
"""
OBJECTS = """
    ObjectStore ObjectStoreConfig ObjectStoreStatus ObjectInfo ObjectMeta ObjectMetaOptions
    ObjectLink ObjectReader ObjectWatcher InitialObjects
"""
SERVICES = """
    add_service Service ServiceRequest ServiceEvents Services ServiceResponses ServiceInfo
    ServicePing ServiceStats Endpoint EndpointGroup EndpointInfo EndpointRequests EndpointStats
    service_error add_auth_callout
"""
GROUPS = """
    ConsumerGroups StaticGroup StaticGroupConfig ElasticGroup ElasticGroupConfig GroupMember
    GroupMsg MemberMapping PartitioningFilter Advisories Advisory DeadLetters DeadLetter
"""
# Place, title, and the package with its names or a list of modules.
PAGES = [
    ("client", "The client", "natsproto", CLIENT),
    ("streams", "Streams", "jetstream", STREAMS),
    ("consumers", "Consumers and messages", "jetstream", CONSUMERS),
    ("publishing", "Publishing", "jetstream", PUBLISHING),
    ("key-value", "The key-value store", "jetstream", KEY_VALUE),
    ("objects", "The object store", "jetstream", OBJECTS),
    ("services", "Services", "jetstream", SERVICES),
    ("groups", "Groups, advisories, dead letters", "jetstream", GROUPS),
    ("wire", "The wire protocol", "natsproto", WIRE),
]
ADAPTERS = "asyncio trio anyio threads blocking poll micropython"
MODULES = [
    ("adapters", "Adapters", [f"natsproto.adapters.{name}.connect" for name in ADAPTERS.split()]),
    ("errors", "Errors", ["natsproto.errors", "jetstream.errors"]),
    ("events", "Events", ["natsproto.events", "jetstream.events"]),
    (
        "testing",
        "Testing",
        [
            "natsproto.testing.server.Server",
            "natsproto.testing.cluster.Cluster",
            "jetstream.testing.plugin",
            "natsproto.testing.sim.simulation.Simulation",
            "natsproto.testing.sim.steps.Step",
            "jetstream.testing.sim.simulation.Simulation",
        ],
    ),
]
# Names that are on the page of errors.
ELSEWHERE = {"JetStreamError", "ApiError", "ServiceError", "__version__"}
HEAD = """\
Written from the docstrings. The names are the same in `natsproto.blocking` and
`jetstream.blocking`, where the methods are not coroutines.
"""


def homes(package: str) -> dict[str, str]:
    """Return the full name of each public name, where it is defined."""
    module = {"natsproto": natsproto, "jetstream": jetstream}[package]
    found: dict[str, str] = {}
    for name in module.__all__:
        value = getattr(module, name)
        home = getattr(value, "__module__", None)
        found[name] = f"{home}.{name}" if home else getattr(value, "__name__", name)
    return found


def missing() -> set[str]:
    """Return the public names that are on no page, and listed names that are not public."""
    public = {name for package in ("natsproto", "jetstream") for name in homes(package)}
    errors = {name for name, home in homes("natsproto").items() if ".errors." in home}
    listed = {name for *_, names in PAGES for name in names.split()}
    return (public - errors - ELSEWHERE) ^ listed


def write(folder: Path) -> list[tuple[str, str]]:
    """Write the pages; return their places and titles."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[str, str]] = []
    for place, title, package, names in PAGES:
        full = homes(package)
        written.append(_page(folder, place, title, [full[name] for name in names.split()]))
    for place, title, modules in MODULES:
        written.append(_page(folder, place, title, modules))
    return written


def _page(folder: Path, place: str, title: str, names: list[str]) -> tuple[str, str]:
    parts = [f"# {title}\n", HEAD, *(f"::: {name}\n" for name in names)]
    (folder / f"{place}.md").write_text("\n".join(parts), encoding="utf-8")
    return f"reference/{place}.md", title
