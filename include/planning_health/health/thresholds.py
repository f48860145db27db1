"""When a signal becomes a warning or critical: defaults, overridden table by table in the settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from planning_health.health.catalogue import SIGNALS
from planning_health.settings.models import TableRule, Threshold
from planning_health.settings.thresholds import DEFAULTS

Level = Literal["ok", "warning", "critical", "not_measured"]

LIST_LENGTH: Final = 5
"""Length of the reference lesson's two lists."""


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of one table."""

    by_signal: Mapping[str, Threshold]
    list_length: int = LIST_LENGTH

    def level(self, signal: str, value: float | None) -> Level:
        """The level of a value: ``not_measured`` without one, ``ok`` for a signal without thresholds."""
        if value is None or math.isnan(value):
            return "not_measured"
        threshold = self.by_signal.get(signal)
        if threshold is None or value < threshold.warning:
            return "ok"
        return "critical" if value >= threshold.critical else "warning"

    def held_against(self, signal: str) -> str:
        """The thresholds of a signal and the tables that they are held against; empty where those are all tables."""
        default, threshold = DEFAULTS.get(signal), self.by_signal.get(signal)
        if default is None or threshold is None or not default.floor:
            return ""
        unit = SIGNALS[signal].unit if signal in SIGNALS else ""
        warning, critical = (f"{value:g} {unit}".rstrip() for value in (threshold.warning, threshold.critical))
        return f"The threshold of {warning} (critical: {critical}) is for {default.floor}."

    def reached(self, signal: str, level: Level) -> float | None:
        """The threshold that a level stands for; ``None`` below a warning."""
        threshold = self.by_signal.get(signal)
        if threshold is None or level not in ("warning", "critical"):
            return None
        return threshold.critical if level == "critical" else threshold.warning


def resolve_thresholds(rule: TableRule | None) -> Thresholds:
    """The defaults, overridden by a table's rule."""
    defaults = {
        signal: Threshold(warning=default.warning, critical=default.critical) for signal, default in DEFAULTS.items()
    }
    overrides = dict(rule.thresholds) if rule else {}
    return Thresholds(defaults | overrides, rule.list_length if rule else LIST_LENGTH)


def worst(levels: list[Level]) -> Level:
    """The worst level; ``ok`` when there is none."""
    order: tuple[Level, ...] = ("critical", "warning", "ok", "not_measured")
    return min(levels, key=order.index, default="ok")
