"""Plans scans, hands out plan-tasks, and redeems them; knows nothing of HTTP.

Offset tokens name positions in the plan's total order; redeeming one needs the whole plan, from the cache or computed
again. Entry-range tokens name manifest entries; redeeming one reads these manifests only. Where delete manifests
survive the filter, an entry range alone does not tell which deletes apply: such scans get offset tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import BoundedSemaphore
from typing import Any, Final

from pydantic_core import to_json

from planning_health.errors import InputError, NotMeasurableError
from planning_health.plan_tasks.batching import batch
from planning_health.plan_tasks.entry_ranges import MAX_MANIFESTS_PER_TOKEN, RangePlan, entry_ranges
from planning_health.plan_tasks.service import rest_errors
from planning_health.plan_tasks.service.cache import Found, PlanCache
from planning_health.plan_tasks.service.metrics import ServiceMetrics
from planning_health.plan_tasks.service.options import ServiceOptions, TokenKind
from planning_health.plan_tasks.service.plan import Plan, build_plan
from planning_health.plan_tasks.service.plan_ids import PlanIds, PlannedScan
from planning_health.plan_tasks.service.scan_request import PinnedScan, SnapshotGoneError, pin, scan_of_request
from planning_health.plan_tasks.service.snapshot_reading import Survivors, survivors
from planning_health.plan_tasks.service.source import CatalogSource, SourceTable
from planning_health.plan_tasks.token import (
    EntryRange,
    OffsetToken,
    PastTheEndError,
    RangeToken,
    Token,
    check_table,
    decode,
    encode,
    table_identity,
)
from planning_health.planning.scan import ScanPlanner

DELETES_FALL_BACK: Final = "delete manifests apply to this scan: offset tokens instead of entry ranges"


@dataclass
class Answer:
    """A response body, and what the log line tells about it.

    Attributes:
        body: JSON.
        tasks: file scan tasks in it.
        plan_tasks: tokens in it.
        tokens: the kind of tokens that was handed out or redeemed.
        found: how the plan was come by; ``None`` when no whole plan was needed.
        note: what the client's operator should know.
    """

    body: bytes
    tasks: int
    plan_tasks: int
    tokens: TokenKind
    found: Found | None = None
    note: str | None = None

    def notes(self) -> dict[str, Any]:
        """What the log line tells."""
        told = {"tokens": self.tokens.value, "tasks": self.tasks, "plan_tasks": self.plan_tasks}
        told |= {"plan": self.found.value} if self.found else {}
        return told | ({"note": self.note} if self.note else {})


class PlanningService:
    """Server-side planning for the tables of one catalog.

    Args:
        source: the catalog.
        options: batches, tokens and limits.
        metrics: where plans and cache hits are counted.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        source: CatalogSource,
        options: ServiceOptions,
        metrics: ServiceMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._options, self._metrics = source, options, metrics
        self._cache: PlanCache[Plan] = PlanCache(
            options.cache_bytes, options.cache_entries, options.cache_seconds, clock
        )
        self._planning = BoundedSemaphore(options.plans_at_once)
        self._plan_ids = PlanIds(options.cache_seconds, clock)
        metrics.watch(self._cache)

    def plan(self, namespace: Sequence[str], name: str, body: Any) -> Answer:
        """Plans a scan.

        Raises:
            RestError: the request is faulty, or the table does not exist.
        """
        with _faults(rest_errors.bad_request):
            scan = scan_of_request(body)
        table = self._source.load(namespace, name)
        with _faults(rest_errors.bad_request):
            pinned = pin(scan, table.metadata)
            return self._first(table, pinned, None)

    def planned(self, namespace: Sequence[str], name: str, plan_id: str) -> Answer:
        """The plan response of a plan-id once more.

        Raises:
            RestError: the plan-id is not known here, or its snapshot is gone.
        """
        table = self._source.load(namespace, name)
        planned = self._known(table, plan_id)
        with _faults(rest_errors.no_such_plan_id):
            return self._first(table, pin(planned.scan, table.metadata), plan_id)

    def cancel(self, namespace: Sequence[str], name: str, plan_id: str) -> None:
        """Forgets a plan-id, and its plan when no other plan-id uses it.

        Raises:
            RestError: the plan-id is not known here.
        """
        table = self._source.load(namespace, name)
        planned = self._known(table, plan_id)
        if self._plan_ids.forget(plan_id):
            self._cache.release(planned.key)

    def redeem(self, namespace: Sequence[str], name: str, plan_task: str) -> Answer:
        """The tasks of one plan-task.

        Raises:
            RestError: the table does not exist, or the plan-task is none of its.
        """
        table = self._source.load(namespace, name)
        with _faults(rest_errors.no_such_plan_task):
            token = decode(plan_task)
            check_table(token, table.name.identifier)
            pinned = pin(token.scan, table.metadata)
            try:
                if isinstance(token, RangeToken):
                    with self._planning:
                        return self._ranges(table, pinned, token)
                return self._batch(table, pinned, token)
            except NotMeasurableError:
                self._require_snapshot(namespace, name, token.scan)
                raise

    def _known(self, table: SourceTable, plan_id: str) -> PlannedScan:
        planned = self._plan_ids.get(plan_id)
        if planned is None or planned.table != table_identity(table.name.identifier):
            raise rest_errors.no_such_plan_id(
                "this plan-id is not known: it was cancelled, has expired, or is of another"
            )
        return planned

    def _require_snapshot(self, namespace: Sequence[str], name: str, scan: Mapping[str, Any]) -> None:
        """Files that vanish while they are read have been expired with their snapshot, most likely."""
        pin(scan, self._source.load(namespace, name).metadata)

    def _first(self, table: SourceTable, scan: PinnedScan, plan_id: str | None) -> Answer:
        try:
            return self._completed(table, scan, plan_id)
        except NotMeasurableError as error:
            return _failed(error)

    def _completed(self, table: SourceTable, scan: PinnedScan, plan_id: str | None) -> Answer:
        key = self._key(table, scan)
        note = None
        if self._options.tokens is TokenKind.ENTRY_RANGES:
            with self._planning:
                left = survivors(table, scan)
                if not left.deletes:
                    plan_id = plan_id or self._plan_ids.add(table_identity(table.name.identifier), key, scan.scan)
                    return self._first_ranges(left, plan_id)
            note = DELETES_FALL_BACK
            self._metrics.fallbacks.inc()
        plan, found = self._whole(table, scan)
        plan_id = plan_id or self._plan_ids.add(table_identity(table.name.identifier), key, scan.scan)
        cut = batch(len(plan), self._options.batch_size)
        identity = table_identity(table.name.identifier)
        tokens = self._encoded(OffsetToken(identity, offset, limit, scan.scan) for offset, limit in cut.slices())
        body = _completed_json(plan_id, tokens, plan.tasks_json(slice(0, cut.inline)))
        return Answer(body, cut.inline, cut.tokens, TokenKind.OFFSET, found, note)

    def _first_ranges(self, left: Survivors, plan_id: str) -> Answer:
        cut = entry_ranges(left.entries(), self._options.batch_size)
        inline = cut.batches[0] if cut.batches else ()
        plan = _plan_of_ranges(left, [(left.data[part.manifest], part.start, part.end) for part in inline])
        tokens = self._encoded(_range_tokens(left, cut))
        body = _completed_json(plan_id, tokens, plan.tasks_json(slice(None)))
        return Answer(body, len(plan), len(tokens), TokenKind.ENTRY_RANGES)

    def _encoded(self, tokens: Iterable[Token]) -> list[str]:
        """Plan-tasks of one response. Each repeats the filter, so that their size is bounded and not their number."""
        encoded, size = [], 0
        for token in tokens:
            encoded.append(encode(token))
            size += len(encoded[-1])
            if size > self._options.token_bytes:
                raise InputError(
                    f"batch size {self._options.batch_size}: the plan-tasks of this scan exceed "
                    f"{self._options.token_bytes:,} bytes; ask for fewer files, or serve larger batches"
                )
        return encoded

    def _batch(self, table: SourceTable, scan: PinnedScan, token: OffsetToken) -> Answer:
        plan, found = self._whole(table, scan)
        part = token.task_slice(len(plan))
        return Answer(_object(plan.tasks_json(part)), part.stop - part.start, 0, TokenKind.OFFSET, found)

    def _ranges(self, table: SourceTable, scan: PinnedScan, token: RangeToken) -> Answer:
        named = {part.manifest for part in token.ranges}
        if token.snapshot_id != scan.snapshot_id or not len(named) == len(token.ranges) <= MAX_MANIFESTS_PER_TOKEN:
            raise rest_errors.no_such_plan_task("the plan task's ranges are none that this server hands out")
        left = survivors(table, scan, named)
        by_path = {manifest.path: manifest for manifest in left.data}
        if left.deletes or by_path.keys() != named:
            raise rest_errors.no_such_plan_task("the plan task names manifests that its scan does not read")
        try:
            plan = _plan_of_ranges(left, [(by_path[part.manifest], part.start, part.end) for part in token.ranges])
        except IndexError:
            raise rest_errors.no_such_plan_task("the plan task names entries past the end of a manifest") from None
        return Answer(_object(plan.tasks_json(slice(None))), len(plan), 0, TokenKind.ENTRY_RANGES)

    def _whole(self, table: SourceTable, scan: PinnedScan) -> tuple[Plan, Found]:
        plan, found = self._cache.get(self._key(table, scan), partial(self._compute, table, scan))
        self._metrics.plans.labels(found.value).inc()
        return plan, found

    def _compute(self, table: SourceTable, scan: PinnedScan) -> Plan:
        with self._planning, self._metrics.planning_seconds.time():
            metadata = survivors(table, scan).read()
            planned = ScanPlanner(metadata).plan(scan.filter, case_sensitive=scan.case_sensitive)
            return build_plan(metadata, planned, scan.stats_field_ids)

    @staticmethod
    def _key(table: SourceTable, scan: PinnedScan) -> tuple[str, str, str]:
        return (str(table.metadata.table_uuid), table_identity(table.name.identifier), scan.key)


def _plan_of_ranges(left: Survivors, ranges: Sequence[tuple[Any, int, int]]) -> Plan:
    metadata = left.read_ranges(ranges)
    planned = ScanPlanner(metadata).plan(left.scan.filter, case_sensitive=left.scan.case_sensitive)
    return build_plan(metadata, planned, left.scan.stats_field_ids)


def _range_tokens(left: Survivors, cut: RangePlan) -> Iterator[RangeToken]:
    identity = table_identity(left.table.name.identifier)
    for parts in cut.batches[1:]:
        ranges = tuple(EntryRange(left.data[part.manifest].path, part.start, part.end) for part in parts)
        yield RangeToken(identity, left.scan.snapshot_id or 0, left.scan.scan, ranges)


def _completed_json(plan_id: str, tokens: Sequence[str], tasks: bytes) -> bytes:
    """A completed plan response; without tokens there is no member ``plan-tasks``."""
    head = b'"status":"completed","plan-id":' + to_json(plan_id) + b","
    return _object(head + (b'"plan-tasks":' + to_json(tokens) + b"," if tokens else b"") + tasks)


def _object(members: bytes) -> bytes:
    return b"{" + members + b"}"


def _failed(error: NotMeasurableError) -> Answer:
    """A plan response for a table whose metadata cannot be read: planning failed, and says why."""
    _raise_forbidden(error)
    model = rest_errors.error_model(500, "NotMeasurableException", str(error))
    return Answer(to_json({"status": "failed", "error": model}), 0, 0, TokenKind.OFFSET, note=str(error))


def _raise_forbidden(error: NotMeasurableError) -> None:
    if isinstance(error.__cause__, PermissionError):
        raise rest_errors.forbidden("the store refuses this server the table's metadata") from error


@contextmanager
def _faults(answer: Callable[[str], rest_errors.RestError]) -> Iterator[None]:
    """Turns what is wrong with a request or a token into the answer that the specification gives it."""
    try:
        yield
    except NotMeasurableError as error:
        _raise_forbidden(error)
        raise rest_errors.RestError(500, "NotMeasurableException", str(error)) from error
    except (InputError, PastTheEndError, SnapshotGoneError) as error:
        raise answer(str(error)) from error
    except RecursionError:
        raise answer("the filter is nested too deeply") from None
