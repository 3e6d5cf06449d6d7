"""Flask: gunicorn --workers 2 --threads 4 examples.web.flask_app:app"""

from __future__ import annotations

from flask import Flask, jsonify, request

from examples.web.wsgi_client import jetstream

app = Flask(__name__)


@app.post("/orders/<int:number>")
def place(number: int):
    """Store an order."""
    ack = jetstream().publish("orders.new", request.get_data(), msg_id=f"order-{number}")
    return jsonify(sequence=ack.seq)
