"""A chat room in a page: everyone sees all messages of the stream CHAT, old and new.

index.html calls `main` on Pyodide; serve.py serves both.
"""

from __future__ import annotations

import asyncio

from js import document
from pyodide.ffi import create_proxy

from jetstream import JetStream
from natsproto.adapters.pyodide import connect


async def main(url: str) -> None:
    async with connect(url, name="chat page", max_reconnects=-1) as client:
        js = JetStream(client)
        stream = await js.create_or_update_stream(name="CHAT", subjects=["chat.*"], max_msgs=1000)
        tasks = {asyncio.create_task(show_state(client))}

        def send(event) -> None:
            event.preventDefault()
            text = document.getElementById("text")
            task = asyncio.create_task(js.publish("chat.room", text.value.encode()))
            tasks.add(task)  # or else it might be garbage-collected
            task.add_done_callback(tasks.discard)
            text.value = ""

        document.getElementById("form").addEventListener("submit", create_proxy(send))
        consumer = await stream.ordered_consumer()
        async with consumer.consume() as messages:
            async for msg in messages:
                item = document.createElement("li")
                item.textContent = msg.data.decode()
                document.getElementById("messages").append(item)


async def show_state(client) -> None:
    events = client.events
    while True:
        document.getElementById("status").textContent = client.state
        await events.next()
