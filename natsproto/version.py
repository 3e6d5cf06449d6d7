"""The version, which CONNECT tells the server and pyproject.toml reads."""

VERSION = "0.1.0"
