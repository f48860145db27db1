"""Levels of values, and overrides from the settings."""

from __future__ import annotations

import math

import pytest

from planning_health.health.catalogue import SIGNALS
from planning_health.health.thresholds import resolve_thresholds, worst
from planning_health.settings.models import TableRule
from planning_health.settings.thresholds import DEFAULTS


def rule(**thresholds: dict[str, float]) -> TableRule:
    return TableRule.model_validate({"match": "*", "thresholds": thresholds, "list_length": 3})


@pytest.mark.parametrize(
    ("value", "level"),
    [(None, "not_measured"), (math.nan, "not_measured"), (0, "ok"), (0.3, "warning"), (0.6, "critical")],
)
def test_a_level_is_reached_at_its_threshold(value: float | None, level: str) -> None:
    assert resolve_thresholds(None).level("deleted_ratio", value) == level


def test_a_tables_rule_overrides_single_signals() -> None:
    thresholds = resolve_thresholds(rule(deleted_ratio={"warning": 0.5, "critical": 0.9}))
    assert thresholds.level("deleted_ratio", 0.4) == "ok"
    assert thresholds.level("partition_range_days", 30) == "warning"
    assert thresholds.list_length == 3


def test_every_threshold_is_of_a_known_signal() -> None:
    assert DEFAULTS.keys() <= SIGNALS.keys()


def test_the_worst_level_wins_and_none_is_ok() -> None:
    assert worst(["ok", "warning", "critical", "warning"]) == "critical"
    assert worst([]) == "ok"
