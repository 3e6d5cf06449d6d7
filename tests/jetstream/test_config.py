"""The three lists of each configuration say the same: its table, its attributes, its keywords."""

from __future__ import annotations

import ast
import inspect

import pytest

from jetstream import config
from jetstream.schema import cluster_info, consumer_config, info, stream_config
from jetstream.schema import stream_sources as stream_source
from jetstream.schema import types as field_types
from jetstream.schema.fields import Fields

MODULES = [stream_config, stream_source, consumer_config, info, cluster_info]
CLASSES = [
    cls
    for module in MODULES
    for cls in vars(module).values()
    if inspect.isclass(cls) and issubclass(cls, Fields) and cls.__module__ == module.__name__
]


def annotation(type_: field_types.FieldType) -> str:
    """Return the annotation of an attribute, as it is written in the class."""
    if isinstance(type_, field_types.Embedded):
        return type_.cls.__name__
    if isinstance(type_, field_types.Object):
        return type_.cls.__name__ + " | None"
    if isinstance(type_, field_types._List):
        return f"list[{annotation(type_.item)}]"
    if isinstance(type_, field_types._Map):
        return f"dict[str, {annotation(type_.item)}]"
    plain = {
        "_Text": "str",
        "Choice": "str",
        "_Flag": "bool",
        "_Number": "int",
        "_Duration": "float",
        "_Time": "Timestamp | None",
        "FieldType": "Any",
    }
    return plain[type(type_).__name__]


@pytest.mark.parametrize("cls", CLASSES)
def test_attributes_are_declared_as_the_table_says(cls):
    own = {field.name: annotation(field.type) for field in cls.FIELDS}
    declared = {}
    for base in reversed(cls.__mro__):
        declared.update(vars(base).get("__annotations__", {}))
    for name in ("FIELDS", "extra", "_given", "__hash__"):
        del declared[name]
    assert declared == own
    assert list(declared) == list(own)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_table_describes_every_field(cls):
    assert cls.__doc__
    for field in cls.FIELDS:
        assert field.doc.endswith(".")
        assert field.doc[0] not in " ("
        assert (2, 2) <= field.since <= (2, 15)
    names = [field.name for field in cls.FIELDS]
    assert len(names) == len(set(names))
    assert not set(names) & set(dir(Fields))


def hidden(module) -> list[ast.stmt]:
    """Return the statements of a module that only type checkers see."""
    statements = ast.parse(inspect.getsource(module)).body
    blocks = [node.body for node in statements if isinstance(node, ast.If)]
    return [statement for block in blocks for statement in block]


KEYWORDS = [
    (getattr(module, node.name.removesuffix("Dict")), node)
    for module in MODULES
    for node in hidden(module)
    if isinstance(node, ast.ClassDef)
]
CHOICES = {
    node.target.id: ast.literal_eval(node.value.slice)
    for module in MODULES
    for node in hidden(module)
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.value).startswith("Literal")
}


def test_every_configuration_has_its_keywords():
    assert {cls for cls, _ in KEYWORDS} == {getattr(config, name) for name in config.__all__}


@pytest.mark.parametrize(("cls", "node"), KEYWORDS)
def test_keywords_match_the_table(cls, node):
    types = {field.target.id: ast.unparse(field.annotation) for field in node.body[1:]}
    assert list(types) == [field.name for field in cls.FIELDS]
    for field in cls.FIELDS:
        if isinstance(field.type, field_types.Choice):
            assert set(CHOICES[types[field.name]]) == set(field.type.values)
        elif isinstance(
            field.type,
            (field_types._Text, field_types._Flag, field_types._Number, field_types._Duration),
        ):
            expected = annotation(field.type).replace("float", "Seconds")  # D-SPAN-1
            assert types[field.name] == expected


def test_all_configurations_are_here():
    assert config.StreamConfig is stream_config.StreamConfig
    assert config.ConsumerConfig is consumer_config.ConsumerConfig
    assert sorted(config.__all__) == config.__all__
