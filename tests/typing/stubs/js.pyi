# The global scope of JavaScript.
from typing import Any

def __getattr__(name: str) -> Any: ...
