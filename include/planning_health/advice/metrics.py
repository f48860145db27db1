"""Which column statistics a table should keep: the least that leaves every observed query's pruning as it is.

Statistics are taken away one column after the other, the costliest first, each time on top of what was taken before:
two columns that prune the same files are not both given up. Each step is tried with the planning simulation on the
recorded snapshot, and stands only if no observed filter reads more files than a budget allows.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import StringType

from planning_health.advice.observed import ObservedFilter, ObservedWorkload
from planning_health.health.column_statistics import ColumnStatistics
from planning_health.health.picture import Picture
from planning_health.maintenance.properties import COLUMN_METRICS
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.trim.metrics_config import effective_modes
from planning_health.metadata.model import PlanningMetadata
from planning_health.planning.expressions import UNARY, Expression, UnboundPredicate, leaves
from planning_health.planning.fewer_statistics import MetricsMode, leaf_columns, with_fewer_bounds, with_statistics
from planning_health.planning.scan import ScanPlanner

logger = logging.getLogger(__name__)

NO_STATISTICS: Final = "none"
_COUNTS: Final = "counts"
_FULL: Final = "full"
_USUAL: Final = "truncate(16)"
MOST_FILTERS: Final = 1_000
"""Distinct filters that are simulated, the most frequent ones; columns of the others keep what they have."""


@dataclass(frozen=True)
class Pruning:
    """What a column's statistics are worth to the observed scans, the other columns' as advised.

    Attributes:
        files: data files that the scans with a filter on the column read together, each as often as it was observed.
        files_without: the same without any statistics of the column.
        filters: distinct filters that would read more files.
    """

    files: float
    files_without: float
    filters: int


@dataclass(frozen=True)
class ColumnAdvice:
    """What to keep of one column.

    Attributes:
        mode: the advised mode; ``today`` the one that new files get now.
        why: in a sentence.
        statistics_bytes: what the column's statistics take in today's manifests before compression; ``share`` of all
            bytes of manifests.
        scans: observed scans that filter by the column.
        pruning: ``None`` for a column that no simulated filter uses.
    """

    field_id: int
    column: str
    mode: str
    today: str
    why: str
    statistics_bytes: int
    share: float
    scans: float
    pruning: Pruning | None


@dataclass(frozen=True)
class QueryEffect:
    """The data files that one filter reads with today's statistics and with those advised."""

    name: str
    weight: float
    sources: tuple[str, ...]
    files_before: int
    files_after: int


@dataclass(frozen=True)
class MetricsAdvice:
    """What to keep of a table's column statistics.

    Attributes:
        columns: every column with values of its own, the costliest first.
        default: value of ``write.metadata.metrics.default``; ``None`` leaves it.
        modes: values of the columns' own properties where they change; an empty one removes the property.
        queries: each simulated filter before and after.
        metadata_bytes_before: bytes of all manifests; ``metadata_bytes_after`` once existing entries are trimmed too.
        notes: what the owner should know.
    """

    columns: tuple[ColumnAdvice, ...]
    default: str | None
    modes: Mapping[str, str]
    queries: tuple[QueryEffect, ...]
    metadata_bytes_before: int
    metadata_bytes_after: int
    notes: tuple[str, ...]

    @property
    def request(self) -> MaintenanceRequest | None:
        """The properties to set; ``None`` where they are as advised."""
        if self.default is None and not self.modes:
            return None
        return MaintenanceRequest(
            actions=["set_properties"], metrics_default=self.default, metrics_columns=dict(self.modes)
        )

    def as_json(self) -> dict[str, Any]:
        """The advice as a result file holds it."""
        return asdict(self)


def advise_metrics(metadata: PlanningMetadata, workload: ObservedWorkload, *, budget: int = 0) -> MetricsAdvice | None:
    """What to keep of the table's column statistics; ``None`` where nothing tells which columns are used.

    Args:
        metadata: the recorded snapshot, with the statistics of the workload's columns.
        workload: what was observed.
        budget: how many more files each observed query may read than it reads now.
    """
    if workload.empty or metadata.info.snapshot_id is None:
        return None
    return _Advisor(metadata, workload, budget).advice()


class _Advisor:
    def __init__(self, metadata: PlanningMetadata, workload: ObservedWorkload, budget: int) -> None:
        self.metadata, self.workload, self.budget = metadata, workload, budget
        info = metadata.info
        self.schema = info.metadata.schema()
        modes = effective_modes(self.schema, info.properties, info.sort_order)
        self.truncatable = leaf_columns(self.schema)
        self.names = {field_id: self.schema.find_column_name(field_id) or "" for field_id in self.truncatable}
        self.today = {name: str(modes[field_id]) for field_id, name in self.names.items()}
        self.filters = workload.filters[:MOST_FILTERS]
        self.costs = {row.field_id: row for row in ColumnStatistics(Picture(metadata)).by_column}

    def advice(self) -> MetricsAdvice:
        modes, reasons = self._decide()
        less = {name: mode for name, mode in modes.items() if name in self._simulated}
        after = self._files(less, self.filters)
        own = {name: mode for name, mode in modes.items() if mode != NO_STATISTICS}
        dropped = len(own) < len(modes)
        trimmed = with_statistics(self.metadata, own, default=NO_STATISTICS if dropped else None)
        return MetricsAdvice(
            columns=tuple(
                sorted(
                    (self._column(field_id, modes, reasons, less, after) for field_id in self.names),
                    key=lambda item: (-item.statistics_bytes, item.field_id),
                )
            ),
            **self._properties(modes),
            queries=tuple(
                QueryEffect(item.name, item.weight, item.sources, self._now[item.expression], after[item.expression])
                for item in self.filters
            ),
            metadata_bytes_before=self.metadata.metadata_bytes,
            metadata_bytes_after=trimmed.metadata.metadata_bytes,
            notes=tuple(self._notes()),
        )

    def _decide(self) -> tuple[dict[str, str], dict[str, str]]:
        """Each column's mode, and why."""
        modes: dict[str, str] = {}
        reasons: dict[str, str] = {}
        for field_id in sorted(self.names, key=lambda i: (-self._cost(i), i)):
            name = self.names[field_id]
            kept = self._kept.get(field_id)
            if kept:
                modes[name], reasons[name] = self._as_today(field_id), f"kept as it is: {'; '.join(kept)}"
            else:
                modes[name], reasons[name] = self._least(field_id, modes)
        return modes, reasons

    def _least(self, field_id: int, decided: Mapping[str, str]) -> tuple[str, str]:
        """The cheapest mode with which no observed filter on the column reads more than the budget allows."""
        name = self.names[field_id]
        filters = [item for item in self.filters if name in item.columns]
        counted = name in self.workload.counts_of
        least = _COUNTS if counted and self.today[name] != NO_STATISTICS else NO_STATISTICS
        if not filters:
            why = "COUNT of the column is answered from its counts" if counted else "no observed query uses it"
            return least, why
        if not self._has_bounds(field_id):
            return self._without_bounds(field_id, filters)
        less = {other: mode for other, mode in decided.items() if other in self._simulated}

        def keeps_pruning(mode: str) -> bool:
            after = self._files(less | {name: mode}, filters)
            return all(files <= self._now[expression] + self.budget for expression, files in after.items())

        for mode in dict.fromkeys((least, _COUNTS)):
            if keeps_pruning(mode):
                return mode, _enough(mode, len(filters), self.budget)
        if not self.truncatable[field_id]:
            return _FULL, f"{len(filters)} observed filter(s) prune files by its bounds"
        lengths = range(1, self._longest_bound(field_id) + 1)
        shortest = bisect_left(lengths, True, key=lambda length: keeps_pruning(f"truncate({length})"))
        if shortest == len(lengths):
            return self._as_today(field_id), f"{len(filters)} observed filter(s) need its bounds as they are"
        return (
            f"truncate({lengths[shortest]})",
            f"the shortest bounds with which {len(filters)} observed filter(s) prune as now"
            + (f", but for the {self.budget:,} more files allowed" if self.budget else ""),
        )

    def _without_bounds(self, field_id: int, filters: Sequence[ObservedFilter]) -> tuple[str, str]:
        name = self.names[field_id]
        values = (leaf for item in filters for leaf in leaves(item.expression) if isinstance(leaf, UnboundPredicate))
        if all(leaf.op in UNARY for leaf in values if leaf.name == name):
            return _COUNTS, f"{len(filters)} observed filter(s) ask for nulls only, which counts tell"
        bounded = MetricsMode.parse(self.today[name]).keeps_bounds
        mode = self._as_today(field_id) if bounded else self._plain(field_id, _USUAL)
        return mode, (
            f"{len(filters)} observed filter(s) use it and no file has its bounds: what they would prune cannot be "
            "measured before files have them"
        )

    @cached_property
    def _kept(self) -> dict[int, list[str]]:
        """Columns whose statistics stay whatever the filters say, with the reasons."""
        info, found = self.metadata.info, dict[int, list[str]]()

        def keep(field_ids: Iterable[int], why: str) -> None:
            for field_id in field_ids:
                found.setdefault(field_id, []).append(why)

        keep({f.source_id for spec in info.specs.values() for f in spec.fields}, "the table is partitioned by it")
        keep({f.source_id for f in info.sort_order.fields} if info.sort_order else (), "the table is sorted by it")
        compared = pc.list_flatten(self.metadata.delete_files["equality_ids"])
        keep(compared.unique().to_pylist(), "equality deletes compare it")
        keep(self.schema.identifier_field_ids, "it identifies rows")
        by_name = {name: field_id for field_id, name in self.names.items()}
        over = {name for item in self.workload.filters[MOST_FILTERS:] for name in item.columns}
        workload = self.workload
        for names, why in (
            (workload.row_level, "row-level operations select by it"),
            (workload.hidden, "observed filters use it with values that are not known"),
            (over, f"it is in filters beyond the {MOST_FILTERS:,} most frequent, which were not simulated"),
        ):
            keep((by_name[name] for name in names if name in by_name), why)
        untruncated = {by_name[name] for name in workload.bounds_of if name in by_name}
        keep({i for i in untruncated if not self.truncatable[i]}, "MIN or MAX is answered from its bounds")
        return found

    def _as_today(self, field_id: int) -> str:
        """The mode that keeps what files have and new ones get; bounds that are not text are never truncated."""
        mode = MetricsMode.parse(self.today[self.names[field_id]])
        if not self.truncatable[field_id]:
            return _FULL if self._has_bounds(field_id) else self._plain(field_id, str(mode))
        longest = self._longest_bound(field_id)
        return str(mode) if mode.length is None or mode.length >= longest else f"truncate({longest})"

    def _plain(self, field_id: int, mode: str) -> str:
        return _FULL if MetricsMode.parse(mode).keeps_bounds and not self.truncatable[field_id] else mode

    def _cost(self, field_id: int) -> int:
        return self.costs[field_id].bytes if field_id in self.costs else 0

    @cached_property
    def _simulated(self) -> frozenset[str]:
        """Columns whose statistics the simulation has."""
        recorded = self.metadata.info.recorded_field_ids
        return frozenset(name for field_id, name in self.names.items() if field_id in recorded)

    def _bounds(self, field_id: int) -> list[pa.ChunkedArray]:
        files = self.metadata.data_files
        columns = (f"{side}_bound.{field_id}" for side in ("lower", "upper"))
        return [files[column] for column in columns if column in files.column_names]

    def _has_bounds(self, field_id: int) -> bool:
        return any(bound.null_count < len(bound) for bound in self._bounds(field_id))

    def _longest_bound(self, field_id: int) -> int:
        """Characters of the longest bound; bytes of binary ones, and of those that are no text."""
        lengths = []
        for bound in self._bounds(field_id):
            try:
                text = bound.cast(pa.string()) if isinstance(self.schema.find_type(field_id), StringType) else None
            except pa.ArrowInvalid:
                text = None
            lengths.append(pc.max(pc.binary_length(bound) if text is None else pc.utf8_length(text)).as_py() or 0)
        return max(lengths, default=0)

    @cached_property
    def _now(self) -> dict[Expression, int]:
        return self._files({}, self.filters)

    def _files(self, modes: Mapping[str, str], filters: Sequence[ObservedFilter]) -> dict[Expression, int]:
        """The data files that each filter reads with fewer statistics than now."""
        if not filters:
            return {}
        planner = ScanPlanner(with_fewer_bounds(self.metadata, modes))
        return {item.expression: planner.plan(item.expression).report.result_data_files for item in filters}

    def _column(
        self,
        field_id: int,
        modes: Mapping[str, str],
        reasons: Mapping[str, str],
        less: Mapping[str, str],
        after: Mapping[Expression, int],
    ) -> ColumnAdvice:
        name = self.names[field_id]
        cost = self.costs.get(field_id)
        return ColumnAdvice(
            field_id=field_id,
            column=name,
            mode=modes[name],
            today=self.today[name],
            why=reasons[name],
            statistics_bytes=cost.bytes if cost else 0,
            share=(cost.share or 0.0) if cost else 0.0,
            scans=self.workload.filtered_by(name),
            pruning=self._pruning(name, less, after) if name in self._simulated else None,
        )

    def _pruning(self, name: str, less: Mapping[str, str], after: Mapping[Expression, int]) -> Pruning | None:
        filters = [item for item in self.filters if name in item.columns]
        if not filters:
            return None
        without = self._files({**less, name: NO_STATISTICS}, filters)
        return Pruning(
            files=sum(item.weight * after[item.expression] for item in filters),
            files_without=sum(item.weight * without[item.expression] for item in filters),
            filters=sum(without[item.expression] > after[item.expression] for item in filters),
        )

    def _properties(self, modes: Mapping[str, str]) -> dict[str, Any]:
        """The default and the columns' own properties that differ from those that are set."""
        properties = self.metadata.info.properties
        set_now = {key.removeprefix(COLUMN_METRICS) for key in properties if key.startswith(COLUMN_METRICS)}
        if all(modes[name] == self._plain(field_id, self.today[name]) for field_id, name in self.names.items()):
            return {"default": None, "modes": {}}
        default = NO_STATISTICS if NO_STATISTICS in modes.values() else None
        own = {name: mode for name, mode in modes.items() if mode != default}
        return {"default": default, "modes": own | dict.fromkeys(sorted(set_now - own.keys()), "")}

    def _notes(self) -> list[str]:
        workload = self.workload
        notes = [f"{scans:,.0f} scan(s) not simulated: {reason}" for reason, scans in workload.unread.items()]
        if len(workload.filters) > MOST_FILTERS:
            notes.append(f"{len(workload.filters):,} distinct filters were observed, {MOST_FILTERS:,} simulated")
        notes.append(
            "Properties concern new files only: existing entries of manifests keep their statistics until they are "
            "trimmed, and what was dropped comes back only when data files are rewritten."
        )
        return notes


def _enough(mode: str, filters: int, budget: int) -> str:
    allowed = f"at most {budget:,} more files, as allowed" if budget else "no more files"
    what = "its counts alone" if mode == _COUNTS else "none of its statistics"
    return f"with {what} {filters} observed filter(s) read {allowed}"
