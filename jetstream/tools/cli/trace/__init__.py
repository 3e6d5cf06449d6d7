"""trace and explain: the dialogue of a client and a server, explained in words.

frames      bytes cut into frames, without interpreting them
rules       the rule that a frame follows
pairs       which earlier frame a frame belongs to, and how much later it is
dialogue    all of that for one connection: bytes in, steps out, no I/O
transcript  steps written to a file that replays as a test vector
proxy       a listener between clients and a server
command     the commands
"""
