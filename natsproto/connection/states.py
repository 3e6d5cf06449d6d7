"""The states of a connection and the inputs that are legal in each.

    state       what it waits for                        deadline                 on it
    NEW         connect()                                none: nothing is open    -
    DIALING     the adapter to open a transport          the attempt's            next server
    OPENING     INFO (after the upgrade on a WebSocket)  the attempt's            next server
    SECURING    the adapter to finish the TLS handshake  the attempt's            next server
    GREETING    PONG, the answer to CONNECT and PING     the attempt's            next server
    CONNECTED   frames                                   the next PING            PING, or lost
    WAITING     the time of the next attempt             that time                DIALING
    CLOSED      nothing any more                         none                     -

An attempt has one deadline from Dial to PONG: connect_timeout. So every state but the first and the
last has one, and nothing waits for ever.

Inputs come from the adapter. After it was told to Hangup it reports nothing more about that
transport, so an input that the table does not allow is a mistake in the adapter and raises
InvalidState. In CLOSED late ones are ignored: there is nothing left to go wrong. So are those that
come before the order to hang up was taken (machine.py).
"""

from __future__ import annotations

from natsproto.errors import InvalidState

NEW = "NEW"
DIALING = "DIALING"
OPENING = "OPENING"
SECURING = "SECURING"
GREETING = "GREETING"
CONNECTED = "CONNECTED"
WAITING = "WAITING"
CLOSED = "CLOSED"

STATES = (NEW, DIALING, OPENING, SECURING, GREETING, CONNECTED, WAITING, CLOSED)

CONNECT = "connect"
OPENED = "transport_opened"
SECURED = "tls_started"
DATA = "receive_data"
LOST = "transport_closed"
TIMER = "handle_timer"

INPUTS = (CONNECT, OPENED, SECURED, DATA, LOST, TIMER)

LEGAL = {
    NEW: (CONNECT, TIMER),
    DIALING: (OPENED, LOST, TIMER),
    OPENING: (DATA, LOST, TIMER),
    SECURING: (SECURED, LOST, TIMER),
    GREETING: (DATA, LOST, TIMER),
    CONNECTED: (DATA, LOST, TIMER),
    WAITING: (TIMER,),
    CLOSED: (OPENED, SECURED, DATA, LOST, TIMER),
}


def check(state: str, happened: str) -> bool:
    """Whether to act on the input; InvalidState if it is not legal."""
    if happened not in LEGAL[state]:
        raise InvalidState("%s() is not legal in state %s" % (happened, state))
    return state != CLOSED
