"""natsproto.adapters.driver: a client on a transport in memory, driven from start to end."""

from harness import check, outcome

from natsproto.adapters.driver import Driver, SystemRng, make_connection, open_client, try_addresses
from natsproto.port import run_sync

INFO = b'INFO {"headers":true,"max_payload":1000} \r\n'


class MemoryPort(Driver):
    """Answers for the server; never suspends, so `run_sync` runs the API."""

    def __init__(self, connection):
        super().__init__(connection)
        self.time = 0.0
        self.answers = []
        self.sent = b""
        self.timers = []

    def now(self):
        return self.time

    def dial(self, effect):
        self.answers.append(self.on_opened)
        self.answers.append(lambda: self.on_data(INFO))

    def hang_up(self):
        self.answers = []

    def send(self):
        for piece in self.connection.data_to_send():
            self.sent += piece
            if piece.endswith(b"PING\r\n"):
                self.answers.append(lambda: self.on_data(b"PONG\r\n"))

    def set_timer(self, deadline):
        self.timers.append(deadline)

    async def wait(self, waitable):
        if self.answers:
            self.answers.pop(0)()
        else:
            self.time += 1.0
            self.on_timer()

    async def checkpoint(self):
        pass

    def flush_soon(self):
        self.pump()

    async def aclose(self):
        self.pump()


def client():
    connection = make_connection("nats://a", {"name": "device"}, rng=SystemRng())
    port = MemoryPort(connection)
    client = run_sync(open_client(connection, port))
    check("connected", client.state, "CONNECTED")
    check("greeting", b'"name":"device"' in port.sent, True)
    check("timer", port.timers[0], 5.0)
    run_sync(client.publish("a", b"hello"))
    run_sync(client.flush())
    check("published", b"PUB a 5\r\nhello\r\nPING\r\n" in port.sent, True)
    sub = run_sync(client.subscribe("b"))
    port.answers.append(lambda: port.on_data(b"MSG b %d 2\r\nhi\r\n" % sub.sid))
    check("received", run_sync(sub.next(timeout=5.0)).data, b"hi")
    check("in time", outcome(lambda: run_sync(sub.next(timeout=2.0)))[0], "TimeoutExpired")
    done = []
    port.run_soon(lambda: done.append(True))
    run_sync(client.flush())
    check("run soon", done, [True])
    run_sync(client.close())
    check("closed", client.state, "CLOSED")


def refusals():
    check("tls", outcome(lambda: make_connection("a", {"tls": []}))[0], "InvalidValue")
    check("creds", outcome(lambda: make_connection("a", {"creds": "/no/file"}))[0], "InvalidValue")
    with open("user.creds", "w") as file:
        file.write("jwt")
    make_connection("a", {"creds": "user.creds"})
    try:
        make_connection("a", {"timeout": 1})
        rejected = ""
    except Exception as error:
        rejected = error.__class__.__name__
    check(
        "unknown option", rejected in ("InvalidValue", "TypeError"), True
    )  # with or without its name


def random():
    state = [1]

    def urandom(size):
        """Return bytes that differ each time but are not random: WebAssembly has no os.urandom."""
        state[0] = state[0] * 6364136223846793005 % (1 << 64)
        return (state[0].to_bytes(8, "big") * (size // 8 + 1))[:size]

    rng = SystemRng(urandom)
    for _ in range(100):
        check("fraction", 0.0 <= rng.random() <= 1.0, True)
    for limit in (1, 2, 255, 257, 1 << 4096):
        check("below", 0 <= rng.randrange(limit) < limit, True)
    items = list(range(20))
    rng.shuffle(items)
    check("shuffled", sorted(items), list(range(20)))


def addresses():
    tried = []

    async def connect(address):
        tried.append(address)
        if address != "b":
            raise OSError(address)

    run_sync(try_addresses(["a", "b", "c"], False, connect))
    check("addresses", tried, ["a", "b"])


def run():
    client()
    refusals()
    random()
    addresses()
