from __future__ import annotations

import pytest

from jetstream.errors import ServiceError
from jetstream.events import RequestFailed, ResponseTruncated, ServiceStopped, StatsFailed
from jetstream.services.runner import ServiceRunner, call_async, sync_call
from natsproto.errors import InvalidState, InvalidValue, PermissionDenied, TimeoutExpired
from tests.jetstream.service_stage import UNAVAILABLE, Cancelled, ServiceStage


class Bench:
    """A service that runs in a task; handlers are held back until they are released."""

    def __init__(self, **options):
        self.stage = ServiceStage()
        self.service = self.stage.service(**options)
        self.stage.run(self.service.start())
        self.at_once = 0
        self.most = 0
        self.gates = []
        self.running = None

    def run(self):
        self.running = self.stage.start(self.service.run())
        self.stage.settle()
        return self

    async def slow(self, request):
        """Return a handler that waits until it is released."""
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        gate = [False]
        self.gates.append(gate)
        try:
            while not gate[0]:
                await self.stage.turn()
                if not gate[0]:
                    self.stage.current.awake = False
                    self.stage.current.parked = gate
                    await _Park()
        finally:
            self.at_once -= 1
        return b"done " + request.data

    def release(self, count=1000):
        for gate in self.gates[:count]:
            gate[0] = True
        for task in self.stage.tasks:
            if getattr(task, "parked", [False])[0] and not task.done:
                task.awake = True
        self.gates = self.gates[count:]
        self.stage.settle()

    def send(self, subject, *numbers):
        for number in numbers:
            self.stage.send(subject, b"%d" % number, f"r{number}")
        self.stage.settle()

    def replies(self):
        return [(subject, data) for subject, data, _ in self.stage.answers()]


class _Park:
    def __await__(self):
        yield


@pytest.mark.rule("D-SERVICE-15")
@pytest.mark.parametrize(
    ("result", "data"),
    [
        (b"x", b"x"),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (b"", b""),
        ("x", b'"x"'),
        ({"a": 1}, b'{"a":1}'),
        (0, b"0"),
        (False, b"false"),
    ],
)
def test_handlers_return_the_answer(result, data):
    bench = Bench()
    bench.service.add_endpoint("plain", lambda request: result)

    @bench.service.endpoint()
    async def coroutine(request):
        return result

    bench.run()
    bench.send("plain", 1)
    bench.send("coroutine", 2)
    assert bench.replies() == [("r1", data), ("r2", data)]


@pytest.mark.rule("D-SERVICE-15")
def test_an_answer_of_the_handler_is_the_only_one():
    bench = Bench()

    @bench.service.endpoint()
    async def both(request):
        await request.respond(b"first")
        return b"second"

    @bench.service.endpoint()
    def nothing(request):
        pass

    bench.run()
    bench.send("both", 1)
    bench.send("nothing", 2)
    assert bench.replies() == [("r1", b"first")]


@pytest.mark.rule("D-SERVICE-6", "D-SERVICE-7", "D-SERVICE-19")
def test_handlers_that_raise():
    bench = Bench()

    @bench.service.endpoint()
    async def known(request):
        raise ServiceError(404, "gone", b"x", {"A": "b"})

    @bench.service.endpoint()
    def unknown(request):
        raise ValueError("bad\nthing")

    @bench.service.endpoint()
    def strange(request):
        return {1, 2}

    @bench.service.endpoint()
    async def late(request):
        await request.respond(b"fine")
        raise ValueError("late")

    bench.run()
    for number, name in enumerate(["known", "unknown", "strange", "late"]):
        bench.send(name, number)
    assert bench.stage.answers() == [
        (
            "r0",
            b"x",
            {"A": "b", "Nats-Service-Error": "gone", "Nats-Service-Error-Code": "404"},
        ),
        (
            "r1",
            b"",
            {"Nats-Service-Error": "ValueError: bad thing", "Nats-Service-Error-Code": "500"},
        ),
        (
            "r2",
            b"",
            {
                "Nats-Service-Error": "TypeError: Object of type set is not JSON serializable",
                "Nats-Service-Error-Code": "500",
            },
        ),
        ("r3", b"fine", {}),
    ]
    stats = bench.stage.run(bench.service.stats())
    assert [(each.num_errors, each.last_error) for each in stats.endpoints] == [
        (1, "404: gone"),
        (1, "ValueError: bad\nthing"),
        (1, "TypeError: Object of type set is not JSON serializable"),
        (1, "ValueError: late"),
    ]
    events = [bench.stage.run(bench.service.events.next(0)) for _ in range(4)]
    assert [(each.endpoint, each.subject) for each in events] == [
        (name, name) for name in ("known", "unknown", "strange", "late")
    ]
    assert all(isinstance(each, RequestFailed) for each in events)
    assert isinstance(events[1].error, ValueError)


def test_an_error_on_a_connection_that_is_closed():
    bench = Bench()

    @bench.service.endpoint()
    def close(request):
        bench.stage.connection.close(0.0)
        raise ValueError

    bench.run()
    bench.send("close", 1)
    assert (bench.running.outcome(), bench.service.state) == (None, "STOPPED")


@pytest.mark.rule("D-SERVICE-11")
@pytest.mark.parametrize("concurrency", [1, 3])
def test_concurrency(concurrency):
    bench = Bench()
    bench.service.add_endpoint("e", bench.slow, concurrency=concurrency)
    bench.run()
    bench.send("e", *range(5))
    assert bench.at_once == concurrency
    while bench.at_once:
        bench.release(1)
    assert bench.most == concurrency
    assert sorted(bench.replies()) == [(f"r{n}", b"done %d" % n) for n in range(5)]


def test_endpoints_do_not_wait_for_each_other():
    bench = Bench()
    bench.service.add_endpoint("slow", bench.slow)
    bench.service.add_endpoint("fast", lambda request: b"fast")
    bench.run()
    bench.send("slow", 1)
    bench.send("fast", 2)
    assert bench.replies() == [("r2", b"fast")]


@pytest.mark.rule("SERVICE-10")
def test_endpoints_that_are_added_while_it_runs():
    bench = Bench().run()
    for number in range(3):
        bench.service.add_endpoint(f"e{number}", lambda request: request.data)
        bench.stage.settle()
        bench.send(f"e{number}", number)
    assert bench.replies() == [("r0", b"0"), ("r1", b"1"), ("r2", b"2")]
    bench.stage.run(bench.service.stop())
    assert bench.running.outcome() is None


@pytest.mark.rule("SERVICE-22", "SERVICE-23")
def test_stop_answers_every_request():
    bench = Bench()
    bench.service.add_endpoint("e", bench.slow, concurrency=2)
    bench.run()
    bench.send("e", *range(5))
    sid = next(sid for sid, pair in bench.stage.subs.items() if pair[0] == "e")
    bench.stage.pongs = False
    stopping = bench.stage.start(bench.service.stop())
    stopped = bench.stage.start(bench.service.stopped())
    bench.stage.settle()
    bench.stage.send_to(sid, "e", b"5", "r5")  # was in flight
    bench.stage.pongs = True
    bench.stage.settle()
    assert stopping.outcome() is None
    assert (bench.running.done, stopped.done, bench.service.state) == (False, False, "STOPPING")
    while bench.at_once:
        bench.release(1)
    assert sorted(bench.replies()) == [(f"r{n}", b"done %d" % n) for n in range(6)]
    assert bench.running.outcome() is None
    assert stopped.outcome() is None
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("SERVICE-22")
def test_a_handler_can_stop_the_service():
    bench = Bench()

    @bench.service.endpoint()
    async def stop(request):
        await bench.service.stop()
        return b"stopped"

    bench.run()
    bench.send("stop", 1)
    assert bench.replies() == [("r1", b"stopped")]
    assert bench.running.outcome() is None


@pytest.mark.rule("SERVICE-23")
def test_run_raises_the_error_of_stop():
    bench = Bench().run()
    error = ValueError("mine")
    bench.stage.run(bench.service.stop(error))
    assert bench.running.outcome() is error
    assert bench.stage.run(bench.service.stopped()) is error


@pytest.mark.rule("D-SERVICE-10")
@pytest.mark.parametrize("subject", ["$SRV.PING.s", "e"])
def test_a_denied_subscription_ends_run(subject):
    bench = Bench()
    bench.service.add_endpoint("e", lambda request: b"e")
    bench.service.add_endpoint("f", lambda request: b"f")
    bench.run()
    bench.stage.send("f", b"", "r1")
    bench.stage.deny(subject)
    bench.stage.settle()
    assert isinstance(bench.running.outcome(), PermissionDenied)
    assert bench.replies() == [("r1", b"f")]
    assert bench.stage.subs == {}
    [event] = bench.service.hub.machine.events.items
    assert event == ServiceStopped("s", bench.service.id, bench.service.error)


def test_run_needs_a_service_that_is_started_once():
    stage = ServiceStage()
    assert "service is not started" in str(stage.run(stage.service().run()))
    bench = Bench().run()
    assert isinstance(bench.stage.run(bench.service.run()), InvalidState)
    assert not bench.running.done


@pytest.mark.rule("D-SERVICE-13")
def test_run_that_is_canceled():
    bench = Bench()
    bench.service.add_endpoint("e", bench.slow)
    bench.run()
    bench.send("e", 1, 2)
    bench.stage.cancel(bench.running)
    bench.stage.settle()
    assert isinstance(bench.running.outcome(), Cancelled)
    assert bench.stage.answers() == [("r1", b"", UNAVAILABLE)]
    assert (bench.service.state, bench.at_once) == ("STOPPING", 0)
    assert bench.stage.run(bench.service.__aexit__(Cancelled, None, None)) is None
    assert bench.stage.answers() == [("r2", b"", UNAVAILABLE)]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-12")
def test_the_end_of_the_block_handles_the_rest():
    bench = Bench()
    bench.service.add_endpoint("e", lambda request: request.data)
    loop = bench.service.add_endpoint("loop")
    bench.send("e", 1, 2)
    bench.send("loop", 3, 4)
    assert bench.stage.run(loop.next()).data == b"3"
    assert bench.stage.run(bench.service.__aexit__(None, None, None)) is None
    assert bench.stage.answers() == [
        ("r1", b"1", {}),
        ("r2", b"2", {}),
        ("r4", b"", UNAVAILABLE),
        ("r3", b"", UNAVAILABLE),
    ]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-12")
def test_the_end_of_the_block_waits_for_run():
    bench = Bench()
    bench.service.add_endpoint("e", bench.slow)
    bench.run()
    bench.send("e", 1, 2)
    leaving = bench.stage.start(bench.service.__aexit__(None, None, None))
    bench.stage.settle()
    assert not leaving.done
    bench.release(1)
    bench.release(1)
    assert (leaving.outcome(), bench.service.state) == (None, "STOPPED")
    assert bench.replies() == [("r1", b"done 1"), ("r2", b"done 2")]


@pytest.mark.rule("D-SERVICE-13")
def test_the_end_of_the_block_does_not_wait_forever():
    bench = Bench(drain_timeout=5.0)
    bench.service.add_endpoint("e", bench.slow)
    bench.run()
    bench.send("e", 1, 2)
    leaving = bench.stage.start(bench.service.__aexit__(None, None, None))
    bench.stage.settle()
    bench.stage.wire.timer(at=6.0)
    bench.stage.settle()
    error = leaving.outcome()
    assert isinstance(error, TimeoutExpired)
    assert str(error) == "service 's' did not stop in time: 2 requests were not answered"
    assert bench.stage.answers() == [("r2", b"", UNAVAILABLE)]
    bench.release()
    assert bench.replies() == [("r1", b"done 1")]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-13")
def test_the_end_of_the_block_that_is_canceled():
    bench = Bench()
    bench.service.add_endpoint("e", bench.slow)
    bench.send("e", 1, 2)
    leaving = bench.stage.start(bench.service.__aexit__(None, None, None))
    bench.stage.settle()
    bench.stage.cancel(leaving)
    assert isinstance(leaving.outcome(), Cancelled)
    assert bench.stage.answers() == [("r1", b"", UNAVAILABLE), ("r2", b"", UNAVAILABLE)]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-13")
def test_a_block_that_fails_ends_at_once():
    bench = Bench()
    bench.service.add_endpoint("e", lambda request: b"")
    bench.send("e", 1)
    bench.stage.run(bench.service.__aexit__(ValueError, None, None))
    assert bench.stage.answers() == [("r1", b"", UNAVAILABLE)]
    assert (bench.service.state, bench.service.error) == ("STOPPED", None)


def test_a_service_that_was_never_started_has_no_end_to_wait_for():
    stage = ServiceStage()
    service = stage.service()
    assert stage.run(service.__aexit__(None, None, None)) is None
    assert service.state == "STOPPED"


@pytest.mark.rule("SERVICE-18", "D-SERVICE-3", "D-SERVICE-4")
def test_data_of_the_service():
    async def later(endpoint):
        if endpoint.name == "c":
            return {1, 2}
        if endpoint.name == "d":
            raise ValueError
        return {"name": endpoint.name} if endpoint.name == "a" else None

    bench = Bench(stats_data=later)
    for name in "abcd":
        bench.service.add_endpoint(name)
    assert "data" not in bench.stage.ask("$SRV.STATS")["endpoints"][0]
    bench.run()
    found = bench.stage.ask("$SRV.STATS")["endpoints"]
    assert [each.get("data") for each in found] == [{"name": "a"}, None, None, None]
    events = [bench.stage.run(bench.service.events.next(0)) for _ in range(2)]
    assert [(type(each), each.endpoint) for each in events] == [
        (StatsFailed, "c"),
        (StatsFailed, "d"),
    ]
    stats = bench.stage.run(bench.service.stats())
    assert stats.endpoints[0].data == {"name": "a"}
    bench.stage.run(bench.service.stop())
    assert bench.running.outcome() is None


@pytest.mark.rule("D-SERVICE-3")
def test_statistics_that_wait_when_run_is_canceled():
    bench = Bench(stats_data=lambda endpoint: None)
    bench.run()
    bench.stage.send("$SRV.STATS", reply="m")
    bench.stage.cancel(bench.running)
    [(subject, data, _)] = bench.stage.answers()
    assert subject == "m"
    assert b"stats_response" in data


@pytest.mark.rule("D-SERVICE-27")
@pytest.mark.parametrize(("most", "answers"), [(400, 1), (50, 0)])
def test_statistics_with_too_much_data(most, answers):
    bench = Bench(stats_data=lambda endpoint: "x" * 1000)
    bench.service.add_endpoint("a")
    bench.run()
    bench.stage.connection.outbound.max_payload = most
    bench.stage.send("$SRV.STATS", reply="m")
    bench.stage.settle()
    assert len(bench.stage.answers()) == answers
    event = bench.stage.run(bench.service.events.next(0))
    assert (type(event), event.verb, event.size > 1000) == (ResponseTruncated, "STATS", True)


def test_statistics_on_a_connection_that_is_closed():
    bench = Bench(stats_data=lambda endpoint: None)
    bench.run()
    bench.stage.send("$SRV.STATS", reply="m")
    bench.stage.connection.close(0.0)
    bench.stage.settle()
    assert bench.running.outcome() is None


# A single thread


class Alone:
    """A service on a client of one thread; `script` is played while it waits."""

    def __init__(self, **options):
        self.stage = ServiceStage(alone=True)
        self.service = self.stage.service(**options)
        self.stage.script = [lambda: None] * 3
        self.stage.run(self.service.start())
        self.stage.script = []

    def run(self, *script):
        self.stage.script = list(script)
        outcome = self.stage.run(self.service.run())
        assert self.stage.script == []
        return outcome

    def send(self, subject, number):
        return lambda: self.stage.send(subject, b"%d" % number, f"r{number}")

    def stop(self):
        self.service.hub.begin_stop(None)


@pytest.mark.rule("D-SERVICE-18")
def test_a_single_thread_serves_all_endpoints_in_turn():
    bench = Alone(stats_data=lambda endpoint: {"n": 1})
    order = []

    def note(request):
        order.append(request.data)
        return request.data

    bench.service.add_endpoint("a", note)
    bench.service.add_endpoint("b", note)
    bench.service.add_endpoint("loop")

    def many():
        for number in range(3):
            bench.send("a", number)()
        bench.send("b", 9)()
        bench.stage.send("$SRV.STATS", reply="m")

    assert bench.run(many, lambda: None, bench.stop) is None
    assert order in ([b"9", b"0", b"1", b"2"], [b"0", b"9", b"1", b"2"])
    answers = bench.stage.answers()
    assert answers[0][0] == "m"
    assert b'"data":{"n":1}' in answers[0][1]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-18", "D-SERVICE-10")
def test_a_single_thread_and_a_denied_subscription():
    bench = Alone()
    bench.service.add_endpoint("e", lambda request: b"")
    bench.stage.pump()
    denied = bench.run(lambda: bench.stage.deny("$SRV.PING"))
    assert isinstance(denied, PermissionDenied)


@pytest.mark.rule("D-SERVICE-18", "D-SERVICE-13")
def test_a_single_thread_that_is_interrupted():
    bench = Alone()

    @bench.service.endpoint()
    def interrupted(request):
        raise Cancelled

    outcome = bench.run(bench.send("interrupted", 1))
    assert isinstance(outcome, Cancelled)
    assert bench.stage.answers() == [("r1", b"", UNAVAILABLE)]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-18", "D-SERVICE-12")
def test_the_end_of_the_block_on_a_single_thread():
    bench = Alone()
    bench.service.add_endpoint("e", lambda request: b"x")
    bench.stage.send("e", b"", "r1")
    assert bench.stage.run(bench.service.__aexit__(None, None, None)) is None
    assert bench.stage.answers() == [("r1", b"x", {})]
    assert bench.service.state == "STOPPED"


@pytest.mark.rule("D-SERVICE-18")
def test_functions_that_are_not_async():
    stage = ServiceStage()
    call = sync_call(lambda argument: [argument])
    assert stage.run(call(lambda argument: argument, 1)) == [1]

    async def coroutine(argument):
        raise AssertionError

    error = stage.run(call(coroutine, 1))
    assert isinstance(error, InvalidValue)
    assert "is async: this client is not" in str(error)

    class Awaitable:
        def __await__(self):
            raise AssertionError

    assert isinstance(stage.run(call(lambda argument: Awaitable(), 1)), InvalidValue)


def test_functions_that_may_be_async():
    stage = ServiceStage()

    async def coroutine(argument):
        return argument + 1

    assert stage.run(call_async(coroutine, 1)) == 2
    assert stage.run(call_async(lambda argument: argument, 1)) == 1


def test_the_lock_is_free_while_user_code_runs():
    stage = ServiceStage()
    service = stage.service(stats_data=lambda endpoint: seen.append(("data", stage.locked)))
    seen = []

    @service.endpoint()
    def e(request):
        seen.append(("handler", stage.locked))

    stage.run(service.start())
    runner = ServiceRunner(service.hub, stage, call_async, service.stats_data)
    task = stage.start(runner.run())
    stage.settle()
    stage.send("e")
    stage.settle()
    stage.ask("$SRV.STATS")
    assert seen == [("handler", 0), ("data", 0)]
    stage.run(service.stop())
    assert task.outcome() is None
    assert stage.locked == 0
