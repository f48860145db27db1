"""docs/faults.md has a row for each fault test and for no other; the tests themselves compare what happens with it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "faults.md"


def test_each_scenario_has_its_row() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/faults"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    scenarios = re.findall(r"^tests/faults/(\S+::.+)$", done.stdout, re.M)
    rows = re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text(), re.M)
    assert len(scenarios) >= 60, done.stdout + done.stderr
    assert sorted(rows) == sorted(scenarios)
