"""Ordered consumers (ADR-17), pulled and pushed."""
