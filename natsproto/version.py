"""The version number, which CONNECT sends to the server and pyproject.toml reads."""

VERSION = "0.1.0"
