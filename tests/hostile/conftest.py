from __future__ import annotations

from hypothesis import settings

# The same examples in every run, on a slow machine too; `make fuzz` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.load_profile("steady")
