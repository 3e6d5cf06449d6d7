"""Real servers for the tests in this folder."""

pytest_plugins = ["jetstream.testing.plugin"]
