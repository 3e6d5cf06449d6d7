"""The subscribe and pull_subscribe workflows (ADR-15, ADR-13)."""
