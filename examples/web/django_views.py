"""Django: a view that stores an order; examples/web/django_wsgi.py gives it a URL."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from examples.web.wsgi_client import jetstream


def place(request: HttpRequest, number: int) -> JsonResponse:
    """Store an order."""
    ack = jetstream().publish("orders.new", request.body, msg_id=f"order-{number}")
    return JsonResponse({"sequence": ack.seq})
