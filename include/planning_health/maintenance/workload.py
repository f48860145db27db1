"""What a table's queries open while they are planned: the cost that a rewrite of manifests is judged by."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import PlanningHealthError
from planning_health.maintenance.layout import layout_of
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import DATA, DELETES
from planning_health.planning.default_queries import default_queries
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner
from planning_health.settings import Query

logger = logging.getLogger(__name__)

OPEN_COST_BYTES: Final = 64 * 1024
"""What opening a manifest costs beside reading it, in bytes that could be read meanwhile."""


@dataclass(frozen=True)
class Opened:
    """The manifests that planning one query opens, and the bytes that it reads of them."""

    query: Query
    ordinals: tuple[int, ...]
    metadata_bytes: int


@dataclass(frozen=True)
class Workload:
    """A table's queries, the same ones before and after.

    Attributes:
        queries: those of the settings, else those that the table's partitioning invites.
        configured: whether they come from the settings; else nobody knows what is queried.
        now: the instant that ``current_date()`` in a query stands for.
    """

    queries: tuple[Query, ...]
    configured: bool
    now: datetime

    @classmethod
    def of(cls, metadata: PlanningMetadata, configured: Sequence[Query]) -> Workload:
        """The workload of a measured table. A query that cannot be planned is left out: its own step says why."""
        now = datetime.fromisoformat(metadata.info.measured_at)
        if metadata.info.snapshot_id is None:
            return cls((), False, now)
        planner = ScanPlanner(metadata)
        queries = configured or [Query(name=query.name, where=query.where) for query in default_queries(planner)]
        planned = [query for query in queries if _opened(planner, query, now) is not None]
        return cls(tuple(planned), bool(configured and planned), now)

    def opened(self, metadata: PlanningMetadata) -> list[Opened]:
        """What each query opens in a measured or predicted snapshot."""
        if not self.queries:
            return []
        planner = ScanPlanner(metadata)
        found = (_opened(planner, query, self.now) for query in self.queries)
        return [opened for opened in found if opened is not None]

    def cost(self, metadata: PlanningMetadata, spec_id: int) -> float:
        """What planning a query costs on average in one spec's manifests, in bytes.

        The configured queries by their weights. Without them, an equality lookup on each partition field, the mean
        over all its values, with every delete manifest; a scan of everything where no field has a value.
        """
        mine = metadata.manifests.filter(pc.equal(metadata.manifests["partition_spec_id"], spec_id))
        if not self.configured:
            return _lookup_cost(metadata, spec_id, mine)
        opened = self.opened(metadata)
        total = sum(item.query.weight for item in opened)
        costs = (
            item.query.weight * scan_cost(mine.filter(pc.is_in(mine["ordinal"], value_set=_int32(item.ordinals))))
            for item in opened
        )
        return sum(costs) / total if total else scan_cost(mine)


def _int32(values: Sequence[int]) -> pa.Array:
    return pa.array(values, pa.int32())


def _opened(planner: ScanPlanner, query: Query, now: datetime) -> Opened | None:
    try:
        scan = plan_where(planner, query.where, now=now)
    except PlanningHealthError as error:
        logger.info("query %s is left out: %s", query.name, error)
        return None
    return Opened(query, tuple(np.asarray(scan.scanned_manifests).tolist()), scan.report.metadata_bytes)


def _lookup_cost(metadata: PlanningMetadata, spec_id: int, mine: pa.Table) -> float:
    data, deletes = (mine.filter(pc.equal(mine["content"], content)) for content in (DATA, DELETES))
    fields = [field for field in layout_of(metadata).overlap if field.spec_id == spec_id]
    depths = [field.mean for field in fields if field.mean is not None]
    share = sum(depths) / len(depths) / len(data) if depths and len(data) else 1.0
    return scan_cost(data) * share + scan_cost(deletes)


def scan_cost(manifests: pa.Table) -> float:
    """What opening and reading these manifests costs, in bytes."""
    return float(len(manifests) * OPEN_COST_BYTES + (pc.sum(manifests["length"]).as_py() or 0))


def opened_json(opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """What the queries open, as a layout in a result file holds it."""
    return [
        {
            "name": item.query.name,
            "where": item.query.where,
            "manifests": len(item.ordinals),
            "metadata_bytes": item.metadata_bytes,
        }
        for item in opened
    ]
