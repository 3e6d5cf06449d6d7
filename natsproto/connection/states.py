"""The states of a connection, and the table of all transitions between them.

    state       waits for                                deadline                 when it passes
    NEW         connect()                                none: nothing is open    -
    WAITING     the time of the next attempt             that time                dial
    DIALING     the adapter to open a transport          the attempt's            hang up
    OPENING     INFO (after the upgrade on a WebSocket)  the attempt's            hang up
    SECURING    the adapter to finish the TLS handshake  the attempt's            hang up
    SIGNING     the adapter to sign the server's nonce   the attempt's            hang up
    GREETING    PONG, the response to CONNECT and PING   the attempt's            hang up
    CONNECTED   frames                                   the next PING            PING, or hang up
    CLOSED      nothing                                  none                     -

An attempt has one deadline from Dial to PONG: connect_timeout. Every state except the first and
the last therefore has a deadline, and no state waits forever.

TRANSITIONS is the table that runs: `Lifecycle` changes its state by looking up a row, and a row
that is missing raises InvalidState. There are two kinds of rows:

- An *input* comes from the adapter or, for connect(), from the client. A row that leads to its own
  state only says that the input is legal there. After a Hangup effect the adapter reports nothing
  more about that transport, so an illegal input is a mistake in the adapter (D-CONN-23). In CLOSED,
  late reports are legal and have no effect. So are reports that arrive before the adapter has taken
  the Hangup (D-CONN-25, lifecycle.py).
- An *outcome* is what the connection concludes from its inputs, often within the same input: the
  transport opens (OPENING), and if TLS comes first, START_TLS leads on to SECURING at once.
  SIGNING exists only where the adapter signs (host_signing); elsewhere the connection does it.
"""

from __future__ import annotations

from natsproto.errors import InvalidState

NEW = "NEW"
DIALING = "DIALING"
OPENING = "OPENING"
SECURING = "SECURING"
SIGNING = "SIGNING"
GREETING = "GREETING"
CONNECTED = "CONNECTED"
WAITING = "WAITING"
CLOSED = "CLOSED"

STATES = (NEW, DIALING, OPENING, SECURING, SIGNING, GREETING, CONNECTED, WAITING, CLOSED)

# Inputs: the names of the methods of Connection.
CONNECT = "connect"
OPENED = "transport_opened"
SECURED = "tls_started"
SIGNED = "nonce_signed"
DATA = "receive_data"
LOST = "transport_closed"
TIMER = "handle_timer"

INPUTS = (CONNECT, OPENED, SECURED, SIGNED, DATA, LOST, TIMER)

# Outcomes.
DIAL = "dial"  # there is a server to try, and the delay is over
START_TLS = "start_tls"  # TLS comes next: before INFO, or because of INFO
SIGN = "sign"  # INFO has a nonce that the adapter has to sign
GREET = "greet"  # INFO is here, and TLS is done or not needed: CONNECT and PING are queued
ACCEPTED = "accepted"  # the server has answered PONG, and no -ERR in the same read
HANG_UP = "hang_up"  # the attempt or the connection is abandoned: an error, a deadline, a command
CLOSE = "close"  # permanently: by the user, or because no server is left to try

OUTCOMES = (DIAL, START_TLS, SIGN, GREET, ACCEPTED, HANG_UP, CLOSE)

TRANSITIONS = {
    (NEW, CONNECT): WAITING,
    (NEW, TIMER): NEW,
    (NEW, CLOSE): CLOSED,
    (WAITING, TIMER): WAITING,
    (WAITING, DIAL): DIALING,
    (WAITING, CLOSE): CLOSED,
    (DIALING, OPENED): OPENING,
    (DIALING, LOST): WAITING,
    (DIALING, TIMER): DIALING,
    (DIALING, HANG_UP): WAITING,
    (DIALING, CLOSE): CLOSED,
    (OPENING, DATA): OPENING,
    (OPENING, LOST): WAITING,
    (OPENING, TIMER): OPENING,
    (OPENING, START_TLS): SECURING,
    (OPENING, SIGN): SIGNING,
    (OPENING, GREET): GREETING,
    (OPENING, HANG_UP): WAITING,
    (OPENING, CLOSE): CLOSED,
    (SECURING, SECURED): OPENING,
    (SECURING, LOST): WAITING,
    (SECURING, TIMER): SECURING,
    (SECURING, HANG_UP): WAITING,
    (SECURING, CLOSE): CLOSED,
    (SIGNING, SIGNED): OPENING,
    (SIGNING, DATA): SIGNING,
    (SIGNING, LOST): WAITING,
    (SIGNING, TIMER): SIGNING,
    (SIGNING, HANG_UP): WAITING,
    (SIGNING, CLOSE): CLOSED,
    (GREETING, DATA): GREETING,
    (GREETING, LOST): WAITING,
    (GREETING, TIMER): GREETING,
    (GREETING, ACCEPTED): CONNECTED,
    (GREETING, HANG_UP): WAITING,
    (GREETING, CLOSE): CLOSED,
    (CONNECTED, DATA): CONNECTED,
    (CONNECTED, LOST): WAITING,
    (CONNECTED, TIMER): CONNECTED,
    (CONNECTED, HANG_UP): WAITING,
    (CONNECTED, CLOSE): CLOSED,
    (CLOSED, OPENED): CLOSED,
    (CLOSED, SECURED): CLOSED,
    (CLOSED, SIGNED): CLOSED,
    (CLOSED, DATA): CLOSED,
    (CLOSED, LOST): CLOSED,
    (CLOSED, TIMER): CLOSED,
}


def illegal(state: str, what: str) -> InvalidState:
    """Return the error for an input or outcome that has no row."""
    text = "%s() is not legal in state %s" if what in INPUTS else "%s is not a transition from %s"
    return InvalidState(text % (what, state), "D-CONN-23")
