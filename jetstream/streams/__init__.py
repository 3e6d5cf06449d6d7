"""Streams and consumers: created, found, updated and listed, and the handles to them."""
