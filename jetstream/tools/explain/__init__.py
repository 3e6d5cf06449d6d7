"""Explain the frames of a JetStream client in sentences: for traces, and for docs/book."""

from __future__ import annotations

from natsproto.explain import Note, wire_text

from .explainer import Explainer

__all__ = ["Explainer", "Note", "wire_text"]
