"""The drawing of a message path: one line for each server and each step, indented by hop."""

from __future__ import annotations

from .steps import (
    Egress,
    Ingress,
    ServiceImport,
    StreamExport,
    StreamStore,
    SubjectMapping,
    error_of,
)

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .hop import Hop
    from .steps import Step


def draw(hop: Hop, indent: str = "") -> list[str]:
    """Return the lines of a hop and of those after it."""
    where = hop.server.cluster and " in cluster %s" % hop.server.cluster
    lines = ["%s%s%s" % (indent, hop.server.name or "unnamed server", where)]
    following = {each.id: each for each in hop.next}
    for step in hop.steps:
        lines.append("%s  %s" % (indent, describe(step)))
        if isinstance(step, Egress) and step.hop in following:
            lines += draw(following.pop(step.hop), indent + "    ")
    for each in hop.next:
        if each.id in following:
            lines += draw(each, indent + "    ")
    return lines


def describe(step: Step) -> str:
    """Return a line that describes the step."""
    if isinstance(step, Ingress):
        line = "in from %s, subject %s" % (_peer(step), step.subject)
    elif isinstance(step, SubjectMapping):
        line = "mapped to %s" % step.subject
    elif isinstance(step, StreamExport):
        line = "exported to account %s as %s" % (step.account, step.subject)
    elif isinstance(step, ServiceImport):
        line = "imported service of account %s as %s" % (step.account, step.to_subject)
    elif isinstance(step, StreamStore):
        line = "stream %s%s" % (step.stream, ", no interest" if step.no_interest else "")
    elif isinstance(step, Egress):
        line = "out to %s" % _peer(step)
        if step.subscription:
            line += ", subscription %s" % step.subscription
        if step.queue:
            line += ", queue %s" % step.queue
    else:
        line = "unknown step %r" % step
    error = error_of(step)
    return line + (error and ": %s" % error)


def _peer(step: Ingress | Egress) -> str:
    name = step.name and " %s" % step.name
    return "%s%s (cid %d)" % (step.kind, name, step.cid)
