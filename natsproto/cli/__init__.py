"""The command line of core NATS: `python -m natsproto`, which needs no other package.

exits      exit codes, and the code of each error
options    the options that every command has, and the connection that they describe
output     text for people, JSON for programs, errors
commands   the tree of commands
run        runs one command, from its connection to its exit code
messages   pub, sub, req, reply
server     rtt, info
main       the command line itself

The command `natsproto` in jetstream/tools/cli has these commands as well, and uses the same parts.
"""
