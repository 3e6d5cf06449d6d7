# The part of Pyodide that the adapter uses.
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., object])

class JsException(Exception):
    name: str
    message: str

class JsProxy:
    def to_bytes(self) -> bytes: ...

class Proxy(Protocol):
    def destroy(self) -> None: ...

def create_proxy(obj: Callable[..., object]) -> Proxy: ...
def to_js(obj: object) -> Any: ...
