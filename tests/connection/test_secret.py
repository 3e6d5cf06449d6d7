from __future__ import annotations

import copy
import functools
import pickle
import pprint

import pytest

from natsproto.secret import Secret, as_secret

VALUE = "s3cr3t-value"


def give(value: str) -> str:
    return value


SOURCES = [
    pytest.param(VALUE, id="text"),
    pytest.param(lambda: VALUE, id="callable"),
    pytest.param(functools.partial(give, VALUE), id="a callable whose repr tells"),
]


@pytest.mark.parametrize("source", SOURCES)
def test_reveal(source):
    assert Secret(source).reveal() == VALUE


@pytest.mark.rule("D-AUTH-1")
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_shows_it(source):
    secret = Secret(source)
    shown = [repr(secret), str(secret), f"{secret}", "%s %r" % (secret, secret)]
    shown += [pprint.pformat({"password": secret}), repr([secret])]
    shown += [repr(getattr(secret, name)) for name in dir(secret)]
    assert not [text for text in shown if VALUE in text]
    assert repr(secret) == "Secret(***)"


@pytest.mark.rule("D-AUTH-1")
def test_it_has_no_dict():
    with pytest.raises(TypeError):
        vars(Secret(VALUE))


@pytest.mark.rule("D-AUTH-1")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_no_pickle(source, protocol):
    with pytest.raises(TypeError, match="a Secret cannot be pickled") as caught:
        pickle.dumps({"password": Secret(source)}, protocol)
    assert VALUE not in str(caught.value)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_no_copy(duplicate):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        duplicate(Secret(VALUE))


def test_only_the_same_object_is_equal():
    secret = Secret(VALUE)
    same = secret
    assert secret == same
    assert secret != Secret(VALUE)
    assert secret != VALUE
    assert len({secret, Secret(VALUE)}) == 2


@pytest.mark.rule("AUTH-2")
def test_a_callable_is_called_at_each_reveal_and_only_then():
    values = iter(["first", "second"])
    secret = Secret(lambda: next(values))
    assert secret
    assert [secret.reveal(), secret.reveal()] == ["first", "second"]


def test_truth():
    assert not Secret()
    assert not Secret("")
    assert Secret("x")


def test_fixed_secrets():
    assert Secret(VALUE).fixed
    assert not Secret(lambda: VALUE).fixed


def test_as_secret_keeps_a_secret():
    secret = Secret(VALUE)
    assert as_secret(secret) is secret
    assert as_secret(VALUE).reveal() == VALUE
