"""What is written from the code is as the code is now."""

from __future__ import annotations

import runpy

from tests.core import ROOT


def test_the_reference_of_fields_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "fields.py"))
    page = ROOT / "docs" / "jetstream-fields.md"
    assert page.read_text(encoding="utf-8") == made["page"](), "run `python docs/fields.py`"
