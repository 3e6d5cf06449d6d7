"""Services (ADR-32): endpoints that answer requests, can be discovered, and keep statistics."""
