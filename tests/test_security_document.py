"""docs/security.md names a test for each promise, and these are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [line.split("|")[1:-1] for line in (ROOT / "docs" / "security.md").read_text().splitlines() if line[:2] == "| "]
PROMISES = [[cell.strip() for cell in row] for row in ROWS[1:]]


@pytest.mark.parametrize(("promise", "how", "tests"), PROMISES, ids=[row[0][:40] for row in PROMISES])
def test_each_promise_has_tests_that_are_there(promise: str, how: str, tests: str) -> None:
    assert promise.endswith(".")
    assert how.endswith(".")
    files = re.findall(r"`([\w/]+\.py)`", tests)
    assert files
    assert [file for file in files if not (ROOT / "tests" / file).is_file()] == []
