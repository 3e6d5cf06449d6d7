"""The JSON objects of the JetStream API: their fields, types and rules."""
