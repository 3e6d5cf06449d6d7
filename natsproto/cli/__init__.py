"""The command line of core NATS: `python -m natsproto`, which needs no other package.

exits      exit codes, and the code of each error
options    the options that every command has, and the connection that they describe
output     text for people, JSON for programs, errors
commands   the tree of commands
run        one command from its connection to its exit code
messages   pub, sub, req, reply
server     rtt, info
main       the command line itself

The command `natsproto` of jetstream/tools/cli has these commands, too, and is made of the same
parts.
"""
