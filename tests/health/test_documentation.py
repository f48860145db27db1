"""The document of the signals names each one with the thresholds that the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from planning_health.health.catalogue import SIGNALS
from planning_health.settings.thresholds import DEFAULTS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "signals.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("signal", sorted(SIGNALS))
def test_each_signal_is_documented_with_its_meaning_and_thresholds(signal: str) -> None:
    (row,) = [line for line in DOCUMENT.splitlines() if line.startswith(f"| `{signal}` | ") and line.count("|") == 6]
    assert SIGNALS[signal].meaning in row
    if signal in DEFAULTS:
        assert f"| {DEFAULTS[signal].warning:,g} |" in row


@pytest.mark.parametrize("signal", sorted(DEFAULTS))
def test_what_a_threshold_is_held_against_is_documented(signal: str) -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith(f"| `{signal}` | ") and line.count("|") == 3]
    expected = {f"| `{signal}` | {text} |" for text in (DEFAULTS[signal].floor, DEFAULTS[signal].reason) if text}
    assert set(rows) == expected
