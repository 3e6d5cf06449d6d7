from __future__ import annotations

import base64
import copy
import functools
import pickle
import pprint
import sys
import traceback

import pytest

from natsproto.auth import choose_auth, nkeys, parse_creds
from natsproto.errors import AuthorizationFailed, InvalidValue, MissingExtra
from natsproto.secret import Secret

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
JWT = "eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJVIn0.c2lnbmF0dXJl"
NONCE = "9I0Xx_HBi1eobHY"
CREDS = f"""\
-----BEGIN NATS USER JWT-----
{JWT}
------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.

-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""
FIRST = CREDS[: CREDS.index("-----BEGIN USER")]
SECOND = CREDS[len(FIRST) :]
ACCOUNT_SEED = nkeys.encode_seed("A", bytes(32))
LIBRARIES = ["cryptography.hazmat.primitives.asymmetric.ed25519", "nacl.signing"]


class Url:
    """The part of a ServerUrl that Auth reads."""

    def __init__(self, user="", password="", token=""):
        self.user = user
        self.password = password
        self.token = token


PLAIN = Url()


def sign(nonce: bytes) -> bytes:
    """Return 64 bytes whose base64 has everything that base64url lacks: +, / and padding."""
    return b"\xfb\xff" * 31 + nonce[:2]


SIG = "-__7__v_" * 10 + "-_85SQ"


def raising(error: Exception):
    def callback(*args):
        raise error

    return callback


def signature(seed: str = SEED) -> str:
    pytest.importorskip(LIBRARIES[0])
    return base64.urlsafe_b64encode(nkeys.sign(seed, NONCE.encode())).decode().rstrip("=")


FIELDS = [  # options, fields
    ({}, {}),
    ({"user": "u"}, {"user": "u"}),
    ({"user": "u", "password": "p"}, {"user": "u", "pass": "p"}),
    ({"token": "t"}, {"auth_token": "t"}),
    ({"nkey": PUBLIC, "sign": sign}, {"nkey": PUBLIC, "sig": SIG}),
    ({"jwt": JWT, "sign": sign}, {"jwt": JWT, "sig": SIG}),
    ({"jwt": JWT + "\n", "sign": sign}, {"jwt": JWT, "sig": SIG}),
    ({"jwt": JWT, "sign": sign, "token": "t"}, {"jwt": JWT, "sig": SIG, "auth_token": "t"}),
    ({"jwt": JWT, "sign": sign, "user": "u"}, {"jwt": JWT, "sig": SIG, "user": "u"}),
]


@pytest.mark.rule("AUTH-4", "AUTH-5", "AUTH-6")
@pytest.mark.parametrize(("options", "fields"), FIELDS)
def test_fields(options, fields):
    assert choose_auth(**options).connect_fields(NONCE, PLAIN) == fields


@pytest.mark.rule("AUTH-2")
@pytest.mark.parametrize(("options", "fields"), FIELDS)
def test_fields_from_callables(options, fields):
    calls = []

    def give(name, value):
        calls.append(name)
        return value

    def source(name, value):
        return value if name in ("nkey", "sign") else functools.partial(give, name, value)

    auth = choose_auth(**{name: source(name, value) for name, value in options.items()})
    assert calls == []
    assert auth.connect_fields(NONCE, PLAIN) == fields
    assert sorted(calls) == sorted(set(options) - {"nkey", "sign"})
    assert auth.connect_fields(NONCE, PLAIN) == fields
    assert len(calls) == 2 * len(set(calls))


SIGNING = [
    ({"nkey_seed": SEED}, {"nkey": PUBLIC}),
    ({"nkey_seed": SEED + "\n"}, {"nkey": PUBLIC}),
    ({"nkey_seed": lambda: SEED}, {"nkey": PUBLIC}),
    ({"nkey_seed": Secret(SEED)}, {"nkey": PUBLIC}),
    ({"nkey_seed": SEED, "user": "u"}, {"nkey": PUBLIC, "user": "u"}),
    ({"jwt": JWT, "nkey_seed": SEED}, {"jwt": JWT}),
    ({"jwt": lambda: JWT, "nkey_seed": lambda: SEED}, {"jwt": JWT}),
    ({"creds": CREDS}, {"jwt": JWT}),
    ({"creds": lambda: CREDS}, {"jwt": JWT}),
    ({"creds": CREDS, "token": "t"}, {"jwt": JWT, "auth_token": "t"}),
]


@pytest.mark.rule("AUTH-5", "AUTH-6")
@pytest.mark.parametrize(("options", "fields"), SIGNING)
def test_fields_that_a_seed_signs(options, fields):
    expected = {**fields, "sig": signature()}
    assert choose_auth(**options).connect_fields(NONCE, PLAIN) == expected


REFUSED = [  # options, complaint
    ({"token": "t", "user": "u"}, "token conflicts with user: the server uses only one of them"),
    (
        {"token": "t", "password": "p"},
        "token conflicts with password: the server uses only one of them",
    ),
    ({"creds": CREDS, "jwt": JWT}, "creds conflicts with jwt: creds contain a JWT"),
    ({"creds": CREDS, "nkey_seed": SEED}, "creds conflicts with nkey_seed: creds contain a seed"),
    ({"creds": CREDS, "nkey": PUBLIC}, "creds conflicts with nkey: creds contain a seed"),
    (
        {"creds": CREDS, "sign": sign},
        "creds conflicts with sign: creds contain a seed, which signs",
    ),
    (
        {"nkey_seed": SEED, "nkey": PUBLIC},
        "nkey_seed conflicts with nkey: the public key is derived from the seed",
    ),
    ({"nkey_seed": SEED, "sign": sign}, "nkey_seed conflicts with sign: the seed signs"),
    ({"jwt": JWT, "nkey": PUBLIC}, "jwt conflicts with nkey: the JWT names the public key"),
    ({"password": "p"}, "password requires user"),
    ({"jwt": JWT}, "jwt requires nkey_seed or sign"),
    ({"sign": sign}, "sign requires nkey or jwt"),
    ({"nkey": PUBLIC}, "nkey requires sign"),
    ({"user": 5}, "user is int, not a str or a callable"),
    ({"user": "u", "password": b"p"}, "password is bytes, not a str or a callable"),
    ({"nkey": PUBLIC, "sign": b"sig"}, "sign is bytes, not a callable"),
]


@pytest.mark.rule("AUTH-3")
@pytest.mark.parametrize(("options", "complaint"), REFUSED)
def test_refused_settings(options, complaint):
    with pytest.raises(InvalidValue) as caught:
        choose_auth(**options)
    assert str(caught.value) == complaint + " (AUTH-3)"


@pytest.mark.parametrize("name", ["user", "password", "token", "nkey_seed", "jwt", "creds", "nkey"])
@pytest.mark.parametrize("nothing", ["", None])
def test_nothing_given_is_nothing(name, nothing):
    assert choose_auth(**{name: nothing}).connect_fields("", PLAIN) == {}


@pytest.mark.rule("D-AUTH-11", "AUTH-12")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"nkey_seed": SEED[:-1]}, "nkey seed has 57 characters, not 58 (NKEY-1)"),
        (
            {"creds": CREDS.replace(SEED, SEED[:-1])},
            "nkey seed has 57 characters, not 58 (NKEY-1)",
        ),
        (
            {"creds": CREDS.replace("BEGIN USER", "BEGIN")},
            "block 'USER NKEY SEED' of creds is missing (AUTH-9)",
        ),
        ({"nkey_seed": ACCOUNT_SEED}, "nkey seed has type A; a client needs a user (U) (AUTH-12)"),
        (
            {"creds": CREDS.replace(SEED, ACCOUNT_SEED)},
            "nkey seed has type A; a client needs a user (U) (AUTH-12)",
        ),
        (
            {"nkey": nkeys.encode_public_key("A", bytes(32)), "sign": sign},
            "public nkey has type A; a client needs a user (U) (AUTH-12)",
        ),
        (
            {"nkey": PUBLIC[1:], "sign": sign},
            "public nkey has 55 characters, not 56 (NKEY-1)",
        ),
    ],
)
def test_options_are_checked_at_once_where_possible(options, complaint):
    with pytest.raises(InvalidValue) as caught:
        choose_auth(**options)
    assert str(caught.value) == complaint


@pytest.mark.rule("D-AUTH-11")
@pytest.mark.parametrize("options", [{"nkey_seed": SEED}, {"creds": CREDS}])
def test_a_missing_library_is_reported_at_once(options, monkeypatch):
    for module in LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra):
        choose_auth(**options)


@pytest.mark.rule("D-AUTH-11", "D-AUTH-14")
@pytest.mark.parametrize("name", ["nkey_seed", "creds"])
def test_where_the_host_signs_no_library_is_needed(name, monkeypatch):
    for module in LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    text = SEED if name == "nkey_seed" else CREDS
    _, challenge = choose_auth(host_signing=True, **{name: text}).challenge(NONCE, PLAIN)
    assert (challenge.nonce, challenge.seed.reveal()) == (NONCE.encode(), SEED)
    with pytest.raises(InvalidValue, match="57 characters"):
        choose_auth(host_signing=True, **{name: text.replace(SEED, SEED[:-1])})


def test_a_missing_library_in_a_callback_is_reported(monkeypatch):
    for module in LIBRARIES:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra):
        choose_auth(creds=lambda: CREDS).connect_fields(NONCE, PLAIN)


@pytest.mark.rule("AUTH-7")
@pytest.mark.parametrize("options", [{"nkey": PUBLIC, "sign": sign}, {"nkey_seed": lambda: SEED}])
def test_no_nonce_for_an_nkey(options):
    with pytest.raises(AuthorizationFailed, match="server does not support nkeys"):
        choose_auth(**options).connect_fields("", PLAIN)


@pytest.mark.rule("AUTH-7")
@pytest.mark.parametrize("options", [{"jwt": JWT, "sign": sign}, {"creds": lambda: CREDS}])
def test_no_nonce_for_a_jwt(options):
    assert choose_auth(**options).connect_fields("", PLAIN) == {"jwt": JWT}


@pytest.mark.parametrize(
    ("nonce", "signed"),
    [("nönce", "nönce".encode()), ("n\udcff", b"n\xff")],
)
def test_a_nonce_is_signed_as_received(nonce, signed):
    seen = []
    auth = choose_auth(nkey=PUBLIC, sign=lambda data: seen.append(data) or bytes(64))
    auth.connect_fields(nonce, PLAIN)
    assert seen == [signed]


def test_a_nonce_that_is_not_text():
    with pytest.raises(AuthorizationFailed, match="nonce of the server is not text"):
        choose_auth(nkey=PUBLIC, sign=sign).connect_fields("\ud800", PLAIN)


@pytest.mark.rule("AUTH-8")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user": "u", "password": "p"},
        {"user": "u"},
        {"token": "t"},
        {"nkey": PUBLIC, "sign": sign},
        {"user": raising(LookupError())},
        {"nkey_seed": raising(LookupError())},
    ],
)
@pytest.mark.parametrize(
    ("url", "fields"),
    [
        (Url(user="U", password="P"), {"user": "U", "pass": "P"}),
        (Url(user=Secret("U"), password=Secret("P")), {"user": "U", "pass": "P"}),
        (Url(user="U"), {"user": "U"}),
        (Url(token="T"), {"auth_token": "T"}),
        (Url(token=Secret("T")), {"auth_token": "T"}),
    ],
)
def test_the_url_wins(options, url, fields):
    assert choose_auth(**options).connect_fields(NONCE, url) == fields
    assert choose_auth(**options).connect_fields("", url) == fields


@pytest.mark.rule("AUTH-8")
def test_a_jwt_is_sent_in_addition_to_the_url():
    auth = choose_auth(jwt=JWT, sign=sign, token="t")
    fields = auth.connect_fields(NONCE, Url(user="U", password="P"))
    assert fields == {"user": "U", "pass": "P", "jwt": JWT, "sig": SIG}


CREDS_FORMS = [
    ("as nsc writes it", CREDS),
    ("CRLF", CREDS.replace("\n", "\r\n")),
    ("other dashes", CREDS.replace("-----BEGIN", "---BEGIN").replace("SEED-----", "SEED---")),
    ("space around titles", CREDS.replace("-BEGIN", "- BEGIN").replace("JWT-", "JWT -")),
    ("space around lines", CREDS.replace("\n", " \n \t")),
    ("the seed first", SECOND + FIRST),
    ("no end of line at the end", CREDS.rstrip("\n")),
    ("a JWT on two lines", CREDS.replace(JWT, JWT[:9] + "\n" + JWT[9:])),
    ("text around", "text\n" + CREDS + "text"),
]


@pytest.mark.rule("AUTH-9")
@pytest.mark.parametrize(("name", "text"), CREDS_FORMS)
def test_creds(name, text):
    assert parse_creds(text) == (JWT, SEED)


@pytest.mark.rule("AUTH-9")
@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("empty", "", "block 'NATS USER JWT' of creds is missing"),
        ("a path", "/etc/user.creds", "block 'NATS USER JWT' of creds is missing"),
        ("a JWT alone", JWT, "block 'NATS USER JWT' of creds is missing"),
        ("no seed", FIRST, "block 'USER NKEY SEED' of creds is missing"),
        ("no JWT", SECOND, "block 'NATS USER JWT' of creds is missing"),
        ("cut off", FIRST + SECOND[:-40], "block 'USER NKEY SEED' of creds has no end"),
        ("cut early", CREDS[:40], "block 'NATS USER JWT' of creds has no end"),
        ("empty", CREDS.replace(JWT, ""), "block 'NATS USER JWT' of creds is empty"),
        ("empty", CREDS.replace(SEED + "\n", ""), "block 'USER NKEY SEED' of creds is empty"),
        ("two dashes", CREDS[3:], "block 'NATS USER JWT' of creds is missing"),
        ("account", CREDS.replace("USER", "ACCOUNT"), "block 'NATS USER JWT' of creds is missing"),
    ],
)
def test_bad_creds(name, text, complaint):
    with pytest.raises(InvalidValue) as caught:
        parse_creds(text)
    assert str(caught.value) == complaint + " (AUTH-9)"
    assert JWT not in str(caught.value)
    assert SEED not in str(caught.value)


BAD_CALLBACKS = [  # options, complaint
    ({"user": raising(KeyError(SEED))}, "credentials callback user failed: KeyError"),
    (
        {"user": "u", "password": raising(OSError(SEED))},
        "credentials callback password failed: OSError",
    ),
    ({"token": raising(InvalidValue(SEED))}, "credentials callback token failed: InvalidValue"),
    (
        {"jwt": raising(ValueError(SEED)), "sign": sign},
        "credentials callback jwt failed: ValueError",
    ),
    (
        {"jwt": JWT, "nkey_seed": raising(ValueError(SEED))},
        "credentials callback nkey_seed failed: ValueError",
    ),
    ({"creds": raising(OSError(SEED))}, "credentials callback creds failed: OSError"),
    (
        {"nkey": PUBLIC, "sign": raising(ValueError(SEED))},
        "credentials callback sign failed: ValueError",
    ),
    ({"token": lambda: SEED.encode()}, "credentials callback token returned bytes, not str"),
    ({"token": lambda: None}, "credentials callback token returned NoneType, not str"),
    (
        {"nkey": PUBLIC, "sign": lambda nonce: SEED},
        "credentials callback sign did not return 64 bytes",
    ),
    (
        {"jwt": JWT, "sign": lambda nonce: b"x" * 63},
        "credentials callback sign did not return 64 bytes",
    ),
    (
        {"nkey_seed": lambda: SEED + "A"},
        "credentials cannot be used: nkey seed has 59 characters, not 58 (NKEY-1)",
    ),
    (
        {"nkey_seed": lambda: ACCOUNT_SEED},
        "credentials cannot be used: nkey seed has type A; a client needs a user (U) (AUTH-12)",
    ),
    (
        {"jwt": JWT, "nkey_seed": lambda: ACCOUNT_SEED},
        "credentials cannot be used: nkey seed has type A; a client needs a user (U) (AUTH-12)",
    ),
    (
        {"creds": lambda: JWT},
        "credentials cannot be used: block 'NATS USER JWT' of creds is missing (AUTH-9)",
    ),
]


@pytest.mark.rule("D-AUTH-10", "D-AUTH-1")
@pytest.mark.parametrize(("options", "complaint"), BAD_CALLBACKS)
def test_bad_callbacks(options, complaint):
    with pytest.raises(AuthorizationFailed) as caught:
        choose_auth(**options).connect_fields(NONCE, PLAIN)
    assert str(caught.value) == complaint
    assert (caught.value.__cause__ is not None) == ("failed" in complaint)


@pytest.mark.rule("D-AUTH-10")
def test_a_canceled_callback_is_not_a_failed_one():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        choose_auth(token=interrupt).connect_fields(NONCE, PLAIN)


HIDDEN = {
    "user": "s3cr3t-user",
    "password": "s3cr3t-password",
    "token": "s3cr3t-token",
    "jwt": JWT,
    "nkey_seed": SEED,
    "creds": CREDS,
}
WHOLE = [
    ["user", "password"],
    ["token"],
    ["nkey_seed"],
    ["jwt", "nkey_seed"],
    ["creds"],
    ["creds", "user", "password"],
]


def holder(secret: str, *args: object) -> str:
    return secret


def sources(names: list[str], how: str) -> dict[str, object]:
    if how == "text":
        return {name: HIDDEN[name] for name in names}
    return {name: functools.partial(holder, HIDDEN[name]) for name in names}


def shown_by(value: object) -> list[str]:
    """Return the output of common ways to inspect an object, including the objects it holds."""
    texts = [repr(value), str(value), f"{value}", pprint.pformat([value])]
    texts += [repr(getattr(value, name)) for name in dir(value)]
    for name in getattr(type(value), "__slots__", ()):
        inner = getattr(value, name)
        texts += [repr(inner)]
        texts += [repr(item) for item in inner.items()] if isinstance(inner, dict) else []
    return texts


@pytest.mark.rule("D-AUTH-1")
@pytest.mark.parametrize("how", ["text", "callable"])
@pytest.mark.parametrize("names", WHOLE, ids="+".join)
def test_no_secret_shows(names, how):
    if "nkey_seed" in names or "creds" in names:
        pytest.importorskip(LIBRARIES[0])
    auth = choose_auth(**sources(names, how))
    auth.connect_fields(NONCE, PLAIN)
    texts = shown_by(auth)
    secrets = [*HIDDEN.values(), signature()] if names != ["token"] else HIDDEN.values()
    for secret in secrets:
        assert not [text for text in texts if secret in text]
    assert repr(auth) == "Auth(%s)" % ", ".join(sorted(names))
    with pytest.raises(TypeError):
        vars(auth)


@pytest.mark.rule("D-AUTH-1")
def test_a_callback_that_signs_does_not_show():
    auth = choose_auth(jwt=JWT, sign=functools.partial(holder, SEED))
    assert repr(auth) == "Auth(jwt, sign)"
    assert not [text for text in shown_by(auth) if SEED in text or JWT in text]
    assert repr(choose_auth(nkey=PUBLIC, sign=sign)) == "Auth(nkey, sign)"


@pytest.mark.rule("D-AUTH-1")
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "options",
    [{"user": "s3cr3t"}, {"token": lambda: "s3cr3t"}, {"nkey": PUBLIC, "sign": sign}],
)
def test_no_pickle_and_no_copy(options, duplicate):
    with pytest.raises(TypeError, match="an Auth cannot be pickled or copied") as caught:
        duplicate(choose_auth(**options))
    assert "s3cr3t" not in str(caught.value)


def test_without_secrets_it_can_be_pickled():
    auth = pickle.loads(pickle.dumps(choose_auth()))
    assert repr(auth) == "Auth()"
    assert auth.connect_fields(NONCE, PLAIN) == {}


@pytest.mark.rule("D-AUTH-1")
@pytest.mark.parametrize(
    "options",
    [
        {"token": "s3cr3t-token", "user": "s3cr3t-user"},
        {"password": "s3cr3t-password"},
        {"creds": CREDS, "jwt": JWT},
        {"creds": CREDS.replace("BEGIN USER", "BEGIN")},
        {"creds": CREDS.replace(SEED, SEED[::-1])},
        {"nkey_seed": SEED[::-1]},
        {"nkey_seed": SEED, "sign": sign},
        {"jwt": JWT},
    ],
)
def test_no_secret_in_errors(options):
    with pytest.raises(InvalidValue) as caught:
        choose_auth(**options)
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value.args)
    for secret in [*HIDDEN.values(), SEED[::-1]]:
        assert secret not in text
