"""A sensor on MicroPython: every measurement reaches its stream once, also after an outage.

Measurements are kept in memory until the server has acknowledged them. Each has an id, so a
measurement that is sent again because its acknowledgment was lost is stored only once. The client
reconnects by itself; meanwhile the sensor goes on measuring, and if the outage is longer than its
memory, it drops the oldest measurements and counts them.

Put this file on the device as main.py, with the packages of

    python -m embedded.build OUTPUT --program examples/device_sensor.py

and adapt `measure`, URL and the network. docs/embedding.md has the details.
"""

import asyncio
import json
import time

from jetstream import JetStream
from natsproto.adapters.micropython import connect
from natsproto.errors import NatsError, RemoteError

URL = "nats://10.0.0.2:4222"
SUBJECT = "sensors.7.temperature"
EVERY = 10.0  # seconds between two measurements
MOST_KEPT = 200  # measurements without an acknowledgment


def measure():
    """Replace this by a reading, such as machine.ADC(4).read_u16()."""
    return 21.5


class Sensor:
    """Measures at fixed times, and stores what it has measured when it can."""

    def __init__(self, boot_id, measure=measure, every=EVERY):
        self._boot_id = boot_id  # unique for each start, because the numbers begin again
        self._measure = measure
        self._every = every
        self._waiting = []  # (number, payload), the oldest first
        self._number = 0
        self._arrived = asyncio.Event()
        #: Measurements that were dropped because the outage was too long.
        self.dropped = 0
        #: Measurements that are stored.
        self.stored = 0

    async def measure_always(self):
        while True:
            self._number += 1
            row = {"n": self._number, "at": time.time(), "value": self._measure()}
            self._waiting.append((self._number, json.dumps(row).encode()))
            if len(self._waiting) > MOST_KEPT:
                self._waiting.pop(0)
                self.dropped += 1
            self._arrived.set()
            await asyncio.sleep(self._every)

    async def store_always(self, js):
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                number, payload = self._waiting[0]
                try:
                    await js.publish(SUBJECT, payload, msg_id="%s-%d" % (self._boot_id, number))
                except RemoteError as error:  # an outage: the same message again, later
                    print("not stored yet:", error)
                    await asyncio.sleep(min(self._every, 5.0))
                    continue
                self.stored += 1
                if self._waiting and self._waiting[0][0] == number:  # not dropped meanwhile
                    self._waiting.pop(0)


async def watch(client):
    async for event in client.events:
        print(event.text)


async def main(url, sensor, **options):
    # No server at first is an outage like any other.
    options.setdefault("retry_on_first_connect", True)
    async with connect(url, name="sensor-7", **options) as client:
        tasks = [
            asyncio.create_task(watch(client)),
            asyncio.create_task(sensor.measure_always()),
        ]
        try:
            await sensor.store_always(JetStream(client))
        except NatsError as error:  # for good: for example, there is no such stream
            print("stopped:", error)
        finally:
            for task in tasks:
                task.cancel()


if __name__ == "__main__":
    asyncio.run(main(URL, Sensor(time.time())))
