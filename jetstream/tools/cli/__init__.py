"""The command `natsproto`: NATS, JetStream, buckets and services from a shell.

main         the whole command line
exits        the exit codes of the errors of JetStream
context      JetStream as a command uses it, with --domain
fields       options for the fields of a configuration
show         tables and descriptions for people
confirm      the question before something is lost
completion   completion of shells

Each other module is a group of commands. They are made of the parts in natsproto/cli, and so are
the options of the connection, the output and the exit codes. docs/command.md is generated.
"""
