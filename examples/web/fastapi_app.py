"""FastAPI: one client for each worker process, opened and closed by the lifespan.

uvicorn examples.web.fastapi_app:app --workers 2
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

from jetstream import JetStream
from natsproto.adapters.asyncio import connect

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")


@asynccontextmanager
async def lifespan(app: FastAPI):
    """Connect in the process and on the event loop that will use the client."""
    async with connect(URL, name="orders-api") as client:
        app.state.js = JetStream(client)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{number}")
async def place(number: int, request: Request) -> dict[str, int]:
    """Store an order."""
    body = await request.body()
    ack = await request.app.state.js.publish("orders.new", body, msg_id=f"order-{number}")
    return {"sequence": ack.seq}
