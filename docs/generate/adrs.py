"""The table of ADRs, docs/adrs.md: record, support, rules, tests.

The support is written here; the rules and the number of tests follow from spec_notes and the tests.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docs.generate.pages import rule_link
from tests.rules import ROOT

if TYPE_CHECKING:
    from tests.rules import Rule

PAGE = ROOT / "docs" / "adrs.md"
HEAD = Path(__file__).with_name("texts") / "adrs.md"
NAMED = re.compile(r"\bADR-(\d+)\b")


class Record(NamedTuple):
    """A record that concerns clients."""

    number: int
    title: str
    missing: str = ""  # "all": not supported

    @property
    def support(self) -> str:
        """Return "yes", "partly" or "no"."""
        return {"": "yes", "all": "no"}.get(self.missing, "partly")


RECORDS = [
    Record(1, "JetStream JSON API"),
    Record(2, "Typed messages"),
    Record(3, "Service latency"),
    Record(4, "Headers"),
    Record(5, "Lame duck mode"),
    Record(6, "Naming rules"),
    Record(7, "Error codes"),
    Record(8, "Key-value store"),
    Record(9, "Idle heartbeats"),
    Record(10, "Extended purge"),
    Record(11, "Hostname resolution"),
    Record(13, "Pull consumers"),
    Record(14, "User JWTs without a library"),
    Record(15, "Subscribe workflow"),
    Record(17, "Ordered consumers"),
    Record(19, "API prefixes"),
    Record(20, "Object store"),
    Record(21, "Contexts", "the program nsc, SOCKS proxies, the certificate store of Windows"),
    Record(22, "Publish retries"),
    Record(26, "Auth callout"),
    Record(28, "Republish"),
    Record(30, "Subject transforms"),
    Record(31, "Direct get", "payloads without headers from replicas"),
    Record(32, "Services"),
    Record(33, "Metadata"),
    Record(34, "Multiple filters"),
    Record(35, "Compression"),
    Record(36, "Subject mapping of streams"),
    Record(37, "Simplified API"),
    Record(40, "Connection"),
    Record(41, "Message path tracing"),
    Record(42, "Priority groups"),
    Record(43, "TTL of messages"),
    Record(44, "Versioning"),
    Record(47, "Request many"),
    Record(48, "TTL of keys"),
    Record(49, "Counters"),
    Record(50, "Batch publishing"),
    Record(51, "Scheduled messages"),
    Record(53, "Feature flags"),
    Record(54, "KV codecs"),
    Record(55, "Trusted proxies"),
    Record(56, "Persist mode"),
    Record(57, "KV transforms"),
    Record(59, "Sourcing"),
    Record(60, "Sourcing of work queues"),
    Record(62, "Desired state of replicas"),
    Record(63, "Backup and restore"),
]


def render(rules: dict[str, Rule], tests: dict[str, list[str]]) -> str:
    """Return the text of the page."""
    parts = [HEAD.read_text(encoding="utf-8")]
    for record in RECORDS:
        own = [rule for rule in rules.values() if concerns(rule, record.number)]
        names = {name for rule in own for name in tests.get(rule.id, []) if not _needs_peer(name)}
        missing = "" if record.missing == "all" else record.missing
        parts.append(
            f"| {record.number} | {record.title} | {record.support} | {missing or '-'} "
            f"| {_links(own) or '-'} | {len(names) or '-'} |\n"
        )
    return "".join(parts)


def _links(rules: list[Rule]) -> str:
    """Return a link for each section, with the ids of its rules: `PULL-1 to 14, 16`."""
    found: list[str] = []
    for _, group in itertools.groupby(rules, lambda rule: (rule.page, rule.section)):
        own = list(group)
        families: dict[str, list[int]] = {}
        for rule in own:
            family, _, number = rule.id.rpartition("-")
            families.setdefault(family, []).append(int(number))
        ids = [f"{family}-{_ranges(sorted(numbers))}" for family, numbers in families.items()]
        found.append(rule_link(own[0], PAGE, ", ".join(ids)))
    return "; ".join(found)


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as text, with three and more in a row as a range."""
    parts: list[str] = []
    rows = itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    for row in ([number for _, number in pairs] for _, pairs in rows):
        parts += [f"{row[0]} to {row[-1]}"] if len(row) > 2 else map(str, row)
    return ", ".join(parts)


def _needs_peer(test: str) -> bool:
    """Return whether a test needs another client: without that, it is not collected."""
    return "tests/peers/" in test


def concerns(rule: Rule, number: int) -> bool:
    """Return whether a rule comes from this record: by its source, or by the page it is on."""
    return rule.page == f"adr{number}.md" or str(number) in NAMED.findall(rule.source)
