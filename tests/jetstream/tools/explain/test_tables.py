from __future__ import annotations

from jetstream.machine import status
from jetstream.tools.explain.tables import CALLS, STATUSES


def test_every_status_of_a_pull_has_its_own_row_before_the_rest_of_its_code():
    rows = [(code, start) for code, start, _ in STATUSES]
    for code, start, _, _ in status.STATUSES:
        assert [row for row in rows if row[0] == code and start.startswith(row[1])], (code, start)


def test_no_row_hides_a_later_one():
    for number, (code, start, _) in enumerate(STATUSES):
        later = [row for row in STATUSES[number + 1 :] if row[0] == code]
        assert not [row for row in later if row[1].startswith(start)], (code, start)


def test_placeholders_match_the_names():
    for endpoint, count, words, done in CALLS:
        assert words.count("%s") == count, endpoint
        assert done.count("%s") <= 1, endpoint
