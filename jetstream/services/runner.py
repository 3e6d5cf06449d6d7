"""ServiceRunner: runs the user's code of a service: handlers and `stats_data`.

    _watch          takes the endpoints that were added, and runs with their workers a _watch for
                    the next ones; endpoints may be added at any time
    _work           one worker of an endpoint: takes a request and calls the handler, until the
                    service has stopped and no request is left; as many as its concurrency
    _serve_stats    answers STATS, if there is `stats_data`
    _work_alone     does all of this sequentially, for a single-threaded client

On a loop the workers are tasks, elsewhere threads: the port runs them together. User code runs
without the lock that facades hold while they touch the core.
"""

from __future__ import annotations

from jetstream.events import RequestFailed, StatsFailed
from natsproto.errors import InvalidState, NatsError, TimeoutExpired
from natsproto.wire.text import shorten
from natsproto.workers import check_sync, is_async

from . import states
from .responses import STATS, encode

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any

    from natsproto.workers import Guard

    from .endpoint import Endpoint
    from .hub import Hub
    from .request import ServiceRequest

    Call = Callable[[Callable[[Any], object], Any], Awaitable[object]]
    Work = Callable[[], Coroutine[Any, Any, None]]


async def call_async(function: Callable[[Any], object], argument: Any) -> object:
    """Call a function, and await the result if it is a coroutine."""
    result = function(argument)
    return await result if is_async(result) else result  # type: ignore[misc]


def sync_call(make: Callable[[Any], object]) -> Call:
    """Return a `call` for functions that are not async, with a facade of the argument."""

    async def call(function: Callable[[Any], object], argument: Any) -> object:
        result = function(make(argument))
        check_sync(result, function, "D-SERVICE-18", "function")
        return result

    return call


class ServiceRunner:
    """One call of `run`, `stats` or the end of the block.

    `call` calls a user's function. `guard` holds the lock that protects the core.
    """

    def __init__(
        self, hub: Hub, guard: Guard, call: Call, stats_data: Callable[[Any], object] | None
    ) -> None:
        self._hub = hub
        self._machine = hub.machine
        self._guard = guard
        self._call = call
        self._stats_data = stats_data
        self._begun: list[Endpoint] = []
        self._serves_stats = False
        self._turn = 0

    async def run(self) -> None:
        """Handle requests until the service has stopped; raise its error."""
        hub = self._hub
        with self._guard.lock:
            hub.check_started()
            if hub.running:
                text = "service is being run already: %s" % shorten(self._machine.identity.name)
                raise InvalidState(text)
            hub.running = True
            self._machine.serving += 1
        try:
            await (self._work_alone() if hub.one_thread else self._watch())
        finally:
            with self._guard.lock:
                hub.running = False
                self._machine.serving -= 1
                self._answer_waiting()
        if self._machine.error is not None:
            raise self._machine.error  # D-SERVICE-10

    async def close(self, failed: bool, timeout: float) -> None:
        """End the service: after its last answer, or at once if the block has failed."""
        hub, machine = self._hub, self._machine
        if failed or machine.state == states.NEW:
            with self._guard.lock:
                hub.abort()
            return
        with self._guard.lock:
            deadline = hub.session.port.now() + timeout
            hub.begin_stop(None)
        try:
            with self._guard.lock:
                await hub.wait_drained(deadline)
            if not hub.running:
                # D-SERVICE-12: no other call handles the requests that have arrived.
                await (self._work_alone() if hub.one_thread else self._watch())
            with self._guard.lock:
                hub.refuse_rest()
                await hub.wait_stopped(deadline)
        except TimeoutExpired:
            with self._guard.lock:
                left = machine.unfinished
                hub.abort()
            text = "service %s did not stop in time: %d requests were not answered"
            raise TimeoutExpired(text % (shorten(machine.identity.name), left)) from None
        except BaseException:
            with self._guard.lock:
                hub.abort()
            raise

    # Workers

    async def _watch(self) -> None:
        with self._guard.lock:
            workers = await self._next_workers()
        if workers:
            workers.append(self._watch)
            await self._hub.session.port.run_all(workers)

    async def _next_workers(self) -> list[Work]:
        """Wait for endpoints without workers; return their workers, or none at the end."""
        hub, machine = self._hub, self._machine
        while True:
            workers: list[Work] = []
            for endpoint in hub.endpoints:
                if endpoint.handler is not None and endpoint not in self._begun:
                    self._begun.append(endpoint)
                    workers += [self._worker(endpoint)] * endpoint.concurrency
            if self._stats_data is not None and not self._serves_stats:
                self._serves_stats = True
                workers.append(self._serve_stats)
            hub.look()
            if workers or machine.state != states.RUNNING:
                return workers
            await hub.session.port.wait(machine.changed)

    def _worker(self, endpoint: Endpoint) -> Work:
        async def work() -> None:
            await self._work(endpoint)

        return work

    async def _work(self, endpoint: Endpoint) -> None:
        try:
            while True:
                with self._guard.lock:
                    request = await endpoint.take()
                if request is None:
                    return
                await self._handle(endpoint, request)
                await self._hub.session.port.checkpoint()
        except BaseException:
            # Cancellation, Ctrl-C and the like: all workers end.
            with self._guard.lock:
                self._hub.begin_stop(None)
            raise

    async def _handle(self, endpoint: Endpoint, request: ServiceRequest) -> None:
        assert endpoint.handler is not None
        try:
            try:
                result = await self._call(endpoint.handler, request)
                with self._guard.lock:
                    await _respond(request, result)
            except Exception as error:
                with self._guard.lock:
                    await self._fail(endpoint, request, error)
        except BaseException:
            with self._guard.lock:
                request.abandon()
            raise
        finally:
            with self._guard.lock:
                request.finish()

    async def _fail(self, endpoint: Endpoint, request: ServiceRequest, error: Exception) -> None:
        self._machine.emit(RequestFailed(endpoint.name, request.subject, error))  # D-SERVICE-19
        try:
            await request.fail(error)
        except NatsError:
            pass  # the connection is closed, or the answer does not fit
        self._hub.apply()

    # A client of a single thread

    async def _work_alone(self) -> None:
        try:
            while True:
                with self._guard.lock:
                    found = await self._next_alone()
                if found is None:
                    return
                endpoint, request = found
                if endpoint is None or request is None:
                    await self._answer_stats()
                else:
                    await self._handle(endpoint, request)
        except BaseException:
            with self._guard.lock:
                self._hub.begin_stop(None)
            raise

    async def _next_alone(self) -> tuple[Endpoint | None, ServiceRequest | None] | None:
        """Wait for a request to any endpoint; return None when there will be no more.

        A pair of None stands for a STATS request.
        """
        hub, machine = self._hub, self._machine
        while True:
            hub.look()
            if machine.stats_waiting:
                return None, None
            endpoints = [each for each in hub.endpoints if each.handler is not None]
            for _ in endpoints:
                self._turn += 1  # in turn; otherwise a busy endpoint would keep the others waiting
                endpoint = endpoints[self._turn % len(endpoints)]
                request = endpoint.take_queued()
                if request is not None:
                    return endpoint, request
            if machine.state != states.RUNNING and all(each.ended for each in endpoints):
                return None
            await hub.session.port.wait(machine.work)

    # Statistics

    async def _serve_stats(self) -> None:
        machine, port = self._machine, self._hub.session.port
        while True:
            with self._guard.lock:
                while not machine.stats_waiting:
                    if machine.drained:
                        return
                    await port.wait(machine.work)
            await self._answer_stats()

    async def _answer_stats(self) -> None:
        response = await self.stats()
        with self._guard.lock:
            self._answer(self._machine.encode(STATS, response))

    async def stats(self) -> dict[str, Any]:
        """Return the response to STATS, with the data of `stats_data` (SERVICE-18)."""
        machine = self._machine
        function = self._stats_data
        data: list[tuple[Any, object]] = []
        for endpoint in list(self._hub.endpoints) if function is not None else []:
            assert function is not None
            try:
                value = await self._call(function, endpoint)
                encode(value)
            except Exception as error:
                with self._guard.lock:
                    machine.emit(StatsFailed(endpoint.name, error))  # D-SERVICE-4
                    self._hub.apply()
            else:
                if value is not None:
                    data.append((endpoint.queue, value))
        with self._guard.lock:
            return machine.stats_json(data)

    def _answer_waiting(self) -> None:
        """Answer the remaining STATS requests, without data."""
        if self._machine.stats_waiting:
            self._answer(self._machine.encode(STATS, self._machine.stats_json([])))

    def _answer(self, response: bytes | None) -> None:
        session = self._hub.session
        try:
            for msg in self._machine.take_stats_requests():
                if response is not None:
                    session.connection.respond(msg.raw_reply, response)
        except NatsError:
            pass  # the connection is closed
        self._hub.apply()


async def _respond(request: ServiceRequest, result: object) -> None:
    """Answer with the result of a handler: bytes unchanged, any other value as JSON."""
    if result is None or request.answered:
        return
    if isinstance(result, (bytes, bytearray, memoryview)):
        await request.respond(result)  # pyright: ignore[reportUnknownArgumentType] - D-SERVICE-15
    else:
        await request.respond_json(result)
