"""Changes of configurations: apply keywords to an existing one, and describe how two differ.

Keywords name the fields to change, so the others keep their values (D-CALL-16). A configuration
object, or a dict, is a complete configuration.
"""

from __future__ import annotations

from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeVar

    from jetstream.schema.fields import Field, Fields

    Config = TypeVar("Config", bound="Fields")

# Setting the first unsets the second: a consumer has one filter or a list of them.
_INSTEAD = (("filter_subject", "filter_subjects"), ("filter_subjects", "filter_subject"))
_WINDOW = 120.0
# The server's defaults for fields that were not given, if they are neither zero nor -1.
_DEFAULTS: dict[str, tuple[object, ...]] = {
    "ack_wait": (30.0,),
    "duplicate_window": (_WINDOW,),
    "max_ack_pending": (1000,),
    "max_waiting": (512,),
    "num_replicas": (1,),
    "inactive_threshold": (5.0,),
}
# Not compared: the names, which are the same, and pause_until, which is part of the state.
_IGNORED = ("name", "durable_name", "pause_until")


def merge(found: Config, fields: Mapping[str, Any]) -> Config:
    """Return the configuration with these fields changed; raise InvalidValue if one is wrong."""
    made = found.copy()
    changes = dict(fields)
    for one, other in _INSTEAD:
        if fields.get(one) and other not in fields:
            changes[other] = type(getattr(made, other))()
    if fields.get("backoff") and "ack_wait" not in fields:
        changes["ack_wait"] = fields["backoff"][0]  # like the server
    if "max_age" in fields and "duplicate_window" not in fields and is_derived_window(made):
        changes["duplicate_window"] = 0.0
    for name in changes:
        setattr(made, name, changes[name])
    return made


def is_derived_window(stream: Any) -> bool:
    """Return whether the server derived the duplicate window from max_age, as far as one can see.

    It does so unless the window was given.
    """
    window: float = stream.duplicate_window
    return window in (_WINDOW, stream.max_age)


def differences(wanted: Fields, found: Fields) -> list[str]:
    """Describe each field in which they differ, as the server would compare them."""
    given = [field.name for field in wanted.given_fields()]
    texts: list[str] = []
    for field in found.FIELDS:
        if field.name in _IGNORED:
            continue
        ours: Any = getattr(wanted, field.name)
        theirs: Any = getattr(found, field.name)
        if _alike(field, ours, theirs, field.name in given, wanted):
            continue
        shown = (field.name, shorten(theirs), shorten(ours))
        texts.append("%s is %s, not %s" % shown)
    return texts


def _alike(field: Field, ours: Any, theirs: Any, given: bool, wanted: Fields) -> bool:
    if _plain(field, ours) == _plain(field, theirs):
        return True
    if given and _plain(field, ours) is not None:
        return False
    # The server filled it in. Subjects default to the name, the window is at most max_age.
    derived = {
        "subjects": [getattr(wanted, "name", "")],
        "duplicate_window": getattr(wanted, "max_age", None),
    }
    known = _DEFAULTS.get(field.name, ())
    return theirs in known or (field.name in derived and theirs == derived[field.name])


def _plain(field: Field, value: Any) -> object:
    """Return the value as JSON; None for any form of "nothing" and "no limit"."""
    if field.name == "metadata":
        value = {key: value[key] for key in value if not key.startswith("_nats")}
    if value == field.type.zero() or value == -1:
        return None
    json: object = field.type.encode(value)
    return json
