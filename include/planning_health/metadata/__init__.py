"""Planning metadata: recorded once from a table's manifests, then read by everything that follows."""

from planning_health.metadata.model import PlanningMetadata, TableInfo
from planning_health.metadata.record import record_with_pyiceberg
from planning_health.metadata.snapshot_choice import SnapshotChoice
from planning_health.metadata.store import load, save

__all__ = ["PlanningMetadata", "SnapshotChoice", "TableInfo", "load", "record_with_pyiceberg", "save"]
