"""A service with a group, errors and statistics, and a client that looks for it."""

import asyncio
import json
import sys

import nats
import nats.micro
from nats.micro.request import Request, ServiceError
from nats.micro.service import EndpointStats, ServiceStats, ServiceVerb, control_subject


async def divide(request: Request) -> None:
    given = json.loads(request.data)
    if not given["b"]:
        raise ServiceError("400", "division by zero")
    answer = json.dumps({"result": given["a"] // given["b"]}).encode()
    await request.respond(answer, headers={"Kind": "quotient"})


async def fail(request: Request) -> None:
    raise KeyError("missing")


def describe(stats: EndpointStats) -> dict[str, str]:
    return {"endpoint": stats.name}


async def main(url: str) -> None:
    nc = await nats.connect(url)
    service = await nats.micro.add_service(
        nc, name="math", version="1.2.3", description="arithmetic", stats_handler=describe
    )
    async with service:
        group = service.add_group(name="v1", queue_group="workers")
        await group.add_endpoint(name="divide", handler=divide, metadata={"unit": "none"})
        await service.add_endpoint(name="fail", handler=fail)
        await nc.flush()
        answer = await nc.request("v1.divide", b'{"a": 7, "b": 2}', timeout=5)
        print("answer:", answer.data, answer.headers)
        for subject, body in (("v1.divide", b'{"a": 7, "b": 0}'), ("fail", b"")):
            answer = await nc.request(subject, body, timeout=5)
            print("error:", answer.headers, answer.data)

        inbox = nc.new_inbox()
        pings = await nc.subscribe(inbox)
        await nc.publish(control_subject(ServiceVerb.PING, "math"), b"", reply=inbox)
        ping = json.loads((await pings.next_msg(timeout=5)).data)
        print("ping:", ping["name"], ping["version"], ping["type"], ping["id"] == service.id)
        await nc.flush()
        print("only one:", pings.pending_msgs)
        found = await nc.request(control_subject(ServiceVerb.STATS, "math"), b"", timeout=5)
        stats = ServiceStats.from_dict(json.loads(found.data))
        for each in stats.endpoints:
            print("stats:", each.name, each.num_requests, each.num_errors, each.last_error)
            print("     ", each.data, each.processing_time > 0, each.queue_group)
        found = await nc.request(control_subject(ServiceVerb.INFO, "math"), b"", timeout=5)
        info = json.loads(found.data)
        print("info:", info["description"], [each["subject"] for each in info["endpoints"]])
    print("stopped:", service.stopped.is_set())
    try:
        await nc.request("v1.divide", b"{}", timeout=5)
    except nats.errors.NoRespondersError:
        print("gone")
    await nc.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
