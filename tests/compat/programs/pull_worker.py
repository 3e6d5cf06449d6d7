"""A worker that fetches from a stream while its server is restarted."""

import asyncio
import sys

import nats
from nats.errors import TimeoutError
from nats.js.api import ConsumerConfig, RetentionPolicy, StreamConfig
from nats.js.errors import NotFoundError

JOBS = 20


async def main(url: str) -> None:
    reconnected = asyncio.Event()

    async def on_disconnected() -> None:
        print("disconnected")

    async def on_reconnected() -> None:
        print("reconnected")
        reconnected.set()

    async def on_error(error: Exception) -> None:
        pass  # one for each attempt to reconnect

    nc = await nats.connect(
        url,
        disconnected_cb=on_disconnected,
        reconnected_cb=on_reconnected,
        error_cb=on_error,
        reconnect_time_wait=0.2,
        max_reconnect_attempts=-1,
    )
    js = nc.jetstream()
    try:
        await js.stream_info("JOBS")
    except NotFoundError as error:
        print("no stream:", error.code, error.err_code)
    config = StreamConfig(name="JOBS", subjects=["jobs.>"], retention=RetentionPolicy.WORK_QUEUE)
    await js.add_stream(config)
    sub = await js.pull_subscribe(
        "jobs.>", "worker", config=ConsumerConfig(ack_wait=30, max_deliver=5)
    )
    for number in range(JOBS // 2):
        await js.publish("jobs.new", b"%d" % number)
    done = await work(sub, JOBS // 2)
    print("done:", done == [b"%d" % number for number in range(JOBS // 2)])
    try:
        await sub.fetch(1, timeout=0.2)
    except TimeoutError as error:
        print("idle:", error)

    print("ready to be restarted", flush=True)
    await asyncio.wait_for(reconnected.wait(), 20)
    for number in range(JOBS // 2, JOBS):
        await js.publish("jobs.more", b"%d" % number)
    done = await work(sub, JOBS // 2)
    print("done:", sorted(map(int, done)) == list(range(JOBS // 2, JOBS)))
    info = await sub.consumer_info()
    print("left:", info.num_pending, info.num_ack_pending, info.config.max_deliver)
    print("stream:", (await js.stream_info("JOBS")).state.messages, nc.stats["reconnects"])
    await nc.close()
    print("closed:", nc.is_closed)


async def work(sub, count: int) -> list[bytes]:
    done: list[bytes] = []
    while len(done) < count:
        try:
            msgs = await sub.fetch(5, timeout=2)
        except TimeoutError:
            continue
        for msg in msgs:
            await msg.in_progress()
            done.append(msg.data)
            await msg.ack_sync(timeout=5)
    return done


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
