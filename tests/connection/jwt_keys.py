"""Keys for the tests of JWTs."""

from __future__ import annotations

from natsproto.auth import nkeys

OPERATOR, ACCOUNT, SIGNING, USER, SERVER, CURVE = (
    nkeys.encode_seed(kind, bytes([number]) * 32)
    for number, kind in enumerate(["O", "A", "A", "U", "N", "X"], 1)
)
O_KEY, A_KEY, S_KEY, U_KEY, N_KEY = (
    nkeys.public_key(seed) for seed in (OPERATOR, ACCOUNT, SIGNING, USER, SERVER)
)
X_KEY = nkeys.encode_public_key("X", bytes(32))
NOW = 1_700_000_000
