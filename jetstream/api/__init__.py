"""Requests to the JetStream API and their responses."""
