"""Health of a table's planning metadata: signals, thresholds, findings, expectations and their history."""

from planning_health.health.analysis import analyse
from planning_health.health.catalogue import SIGNALS
from planning_health.health.thresholds import DEFAULTS, Thresholds, resolve_thresholds

__all__ = ["DEFAULTS", "SIGNALS", "Thresholds", "analyse", "resolve_thresholds"]
