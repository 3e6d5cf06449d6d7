"""ApiClient: calls of the JetStream API, with a JSON request, a JSON response and typed errors."""

from __future__ import annotations

from jetstream.errors import InvalidResponse, JetStreamError, JetStreamNotAvailable
from natsproto.connection.waitable import NO_RESPONDERS
from natsproto.errors import InvalidValue, NoResponders, NotSupported
from natsproto.wire.subjects import check_known_name, check_publish
from natsproto.wire.text import cut_middle, shorten
from natsproto.wire.versions import read_version

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from jetstream.errors.api import ApiError
    from jetstream.schema.fields import Fields
    from natsproto.client import Client
    from natsproto.session import Session
    from natsproto.wire.frames import Info, Msg

    from .listing import Listing

# D-CALL-15: no listing is that long. Pages have 256 streams or consumers, or 1024 names.
MOST_PAGES = 10_000
API_LEVEL = "Nats-Required-Api-Level"
# CALL-6: INFO has the level since 2.12; 2.11 has level 1.
_FIRST_WITH_LEVEL = (2, 11)
# Error messages name the server version that introduced an API level.
_VERSIONS = {1: "2.11", 2: "2.12", 4: "2.14"}


def session_of(client: Client) -> Session:
    """Return the session of an async client; raise InvalidValue for any other object."""
    session: Session | None = getattr(client, "session", None)
    if session is None:
        from .hints import not_a_client

        raise InvalidValue(not_a_client(client))
    return session


class ApiClient:
    """Call the API of one JetStream, which its prefix or domain selects."""

    __slots__ = ("_renewed", "_until", "prefix", "session", "timeout")

    def __init__(self, session: Session, domain: str, prefix: str, timeout: float) -> None:
        self.session: Session = session
        # CALL-1
        self.prefix: str = "$JS.%s.API" % check_known_name("domain", domain) if domain else prefix
        check_publish(self.prefix, "API prefix")
        self.timeout: float = timeout
        self._until: float | None = None
        self._renewed = False  # whether each response begins another timeout

    def bounded(self) -> ApiClient:  # D-CALL-18
        """Return a client whose calls share one timeout, which begins now."""
        return self if self._until is not None else self.until(self.deadline())

    def until(self, deadline: float) -> ApiClient:
        """Return a client whose calls end at this time at the latest."""
        client = ApiClient(self.session, "", self.prefix, self.timeout)
        client._until = min(deadline, self.deadline())
        return client

    # D-CALL-21

    def paced(self, deadline: float) -> ApiClient:
        """Return a client that expects its first response by this time.

        Each response begins another timeout.
        """
        client = self.until(deadline)
        client._renewed = True
        return client

    def first_try(self) -> ApiClient:
        """Return a client with half of the time that is left, for a call that can be repeated."""
        return self.until((self.session.port.now() + self.deadline()) / 2)

    def deadline(self) -> float:
        """Return when a request that is sent now expires."""
        latest = self.session.deadline(self.timeout)
        return latest if self._until is None else min(latest, self._until)

    async def call(
        self,
        endpoint: str,
        body: dict[str, Any] | None = None,
        *,
        level: int = 0,
        deadline: float | None = None,
    ) -> dict[str, Any]:
        """Return the response; raise the ApiError that it contains.

        `level` is the API level that the call needs. `deadline` ends the wait earlier than the
        timeout of the API.
        """
        headers = None
        if level:
            self.require_level(level, endpoint)
            headers = {API_LEVEL: str(level)}
        session = self.session
        latest = self.deadline()
        request = session.connection.start_request(
            "%s.%s" % (self.prefix, endpoint),
            b"" if body is None else encode_json(body),
            deadline=latest if deadline is None else min(deadline, latest),
            headers=headers,
            wildcards=True,  # a filter is part of the subject of CONSUMER.CREATE
        )
        try:
            reply = await session.settle(request)
        except NoResponders:
            raise JetStreamNotAvailable(  # CALL-3
                "no JetStream answers to %s: it is not enabled, has no leader now, or this"
                " account or domain has none" % cut_middle("%s.%s" % (self.prefix, endpoint))
            ) from None
        assert reply is not None
        if self._renewed:
            self._until = session.deadline(self.timeout)
        try:
            return read_reply(reply.data)
        except JetStreamError as error:
            from jetstream.errors.api import ApiError

            if isinstance(error, ApiError):
                error.asked = endpoint
            raise

    async def pages(self, endpoint: str, key: str, body: dict[str, Any]) -> Listing[Any]:
        """Return all rows of a listing, and the names that the server could not describe."""
        from .listing import Listing, read_missing, read_offline

        found: Listing[Any] = Listing()
        offset = 0
        before: object = None
        for _ in range(MOST_PAGES):
            reply = await self.call(endpoint, dict(body, offset=offset))
            page = _rows(reply, key)
            missing = read_missing(reply)
            offline = read_offline(reply)
            known = len(missing) + len(offline)
            if (page, missing, offline) == before:
                raise InvalidResponse("%s returned the same page twice" % endpoint)
            before = (page, missing, offline)
            found.extend(page)  # not +=, which makes it a plain list on MicroPython
            found.missing += missing
            found.offline.update(offline)
            # CALL-4: a page may have gaps, so the next one begins after the limit.
            offset += max(len(page) + known, read_number(reply, "limit"))
            if offset >= read_number(reply, "total") or not (page or known):
                return found
        raise InvalidResponse("%s does not end after %d pages" % (endpoint, MOST_PAGES))

    def require_level(self, level: int, what: str) -> None:
        """Raise NotSupported if the connected server has a lower API level."""
        require_level(self.session.connection.info, level, what)

    def check_since(self, config: Fields) -> None:
        """Raise NotSupported for fields that the server would silently ignore (D-CALL-7)."""
        info = self.session.connection.info
        version = read_version(info.version) if info is not None else ()
        if info is None or not version:
            return
        for name, since in _newer_fields(config, version):
            needed = ".".join([str(number) for number in since])
            raise NotSupported(
                "%s needs server %s; this is %s" % (name, needed, cut_middle(info.version))
            )


def _newer_fields(config: Fields, version: tuple[int, ...]) -> list[tuple[str, tuple[int, int]]]:
    """Return the fields that are set and newer than this server, including nested ones."""
    found: list[tuple[str, tuple[int, int]]] = []
    for field in config.FIELDS:
        value: Any = getattr(config, field.name)
        if value == field.type.zero():
            continue
        if version < field.since:
            found.append((field.name, field.since))
            continue
        items: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        for each in items:
            if hasattr(each, "FIELDS"):
                inside = _newer_fields(each, version)
                found += [("%s of %s" % (name, field.name), since) for name, since in inside]
    return found


def require_level(info: Info | None, level: int, what: str) -> None:
    """Raise NotSupported if the server's API is too old; some servers would ignore the call."""
    if info is None:
        return
    known = info.api_lvl
    if not known:
        version = read_version(info.version)
        if not version:
            return  # unknown version: the server itself will reject the call
        known = 1 if version >= _FIRST_WITH_LEVEL else 0
    if known < level:
        since = " (nats-server %s)" % _VERSIONS[level] if level in _VERSIONS else ""
        raise NotSupported(
            "%s needs JetStream API level %d%s; server %s has %d"
            % (what, level, since, cut_middle(info.version), known)
        )


def encode_json(body: object) -> bytes:
    """Return the body of a request."""
    import json

    return json.dumps(body, separators=(",", ":")).encode()


def is_no_responders(msg: Msg) -> bool:
    """Return whether a response is the server's 503: no service has received the request."""
    return msg.status == NO_RESPONDERS and not msg.data


def read_reply(data: bytes) -> dict[str, Any]:
    """Return the JSON object; raise its ApiError, or InvalidResponse if it is not one."""
    answer = read_object(data)
    error = read_error(answer)  # CALL-2
    if error is not None:
        raise error
    return answer


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object; raise InvalidResponse if it is not one."""
    import json

    try:
        reply: Any = json.loads(data.decode())
    except (ValueError, RuntimeError):  # RuntimeError: the JSON is nested too deeply
        raise InvalidResponse("response is not valid JSON: %s" % shorten(data)) from None
    if not isinstance(reply, dict):
        raise InvalidResponse("response is not a JSON object: %s" % shorten(data))
    return reply  # pyright: ignore[reportUnknownVariableType] - JSON keys are str


def read_error(answer: dict[str, Any]) -> ApiError | None:
    """Return the error in a response, if any."""
    error: Any = answer.get("error")
    if not error:
        return None
    if not isinstance(error, dict):
        raise InvalidResponse("error of the response is not an object: %s" % shorten(error))
    from jetstream.errors.api import api_error

    return api_error(error)  # pyright: ignore[reportUnknownArgumentType] - as above


def _rows(reply: dict[str, Any], key: str) -> list[Any]:
    rows: list[Any] = reply.get(key) or []
    if not isinstance(rows, list):
        raise InvalidResponse("field %s of the response is not a list: %s" % (key, shorten(rows)))
    return rows


def read_number(reply: dict[str, Any], key: str) -> int:
    """Return the number at this key, 0 if there is none; raise InvalidResponse otherwise."""
    value: Any = reply.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        text = "field %s of the response is not a number: %s"
        raise InvalidResponse(text % (key, shorten(value)))
    return value
