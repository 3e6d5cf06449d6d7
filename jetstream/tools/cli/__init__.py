"""The command `natsproto`: NATS, JetStream, buckets and services from a shell.

main         the whole command line
exits        the exit codes of the errors of JetStream
context      JetStream as a command uses it, with --domain
fields       options for the fields of a configuration
show         tables and descriptions for people
confirm      the confirmation before something is deleted
completion   completion of shells

Each other module is a group of commands. They use the parts in natsproto/cli, including the options
of the connection, the output and the exit codes. docs/command.md is generated.
"""
