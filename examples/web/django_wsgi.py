"""Django in one file: gunicorn --preload --workers 2 examples.web.django_wsgi:application

A project has its settings and URLs in files of their own; the view would be the same.
"""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

from examples.web.django_views import place

settings.configure(ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__)
urlpatterns = [path("orders/<int:number>", place)]
application = get_wsgi_application()
