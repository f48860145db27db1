"""Step: how a planning server would hand out the plan of a table's heaviest query."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from planning_health.envelope import Envelope, Headline
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import DATA
from planning_health.plan_tasks import (
    BYTES_PER_TASK,
    Batching,
    CacheKind,
    DesignCost,
    Load,
    OffsetToken,
    PlanShape,
    Routing,
    Service,
    batch,
    compare_designs,
    encode,
    mean_plans_computed,
    plan_bytes,
    plans_computed,
    table_identity,
)
from planning_health.planning.expressions import AlwaysTrue, to_iceberg_json
from planning_health.planning.scan import ScanPlanner, SimulatedScan
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.settings.models import PlanTasksSettings
from planning_health.stages.heaviest_query import HeaviestQuery, heaviest_query, plan_query
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND = "plan_tasks"

MAX_REPLICAS = 10
"""Replicas that the series of computed plans goes up to, unless more are configured."""

CLIENT_THREADS = 8
"""Requests that a client of the simulation has under way at once."""

_SIMULATED_REQUESTS = 20_000  # per mitigation, over all runs

LIMITS = (
    f"A task is taken to hold {BYTES_PER_TASK} bytes in a response and in a cache; tables with statistics of many "
    "columns hold more.",
    f"The simulated client has {CLIENT_THREADS} requests under way, and a plan takes a hundred times as long as "
    "cutting a batch from it. No server was measured.",
)


def simulate_plan_tasks(settings: SettingsDocument, run_folder: RunFolder, table: TableName) -> Envelope:
    """Compares ways to hand out the plan of the heaviest query of a table.

    Args:
        settings: batch size and replicas.
        run_folder: holds the measurement, and the planning result that names the heaviest query.
        table: the table.
    """
    query = heaviest_query(settings, run_folder, table)

    def work(metadata: PlanningMetadata) -> Outcome:
        scan = plan_query(ScanPlanner(metadata), query)
        return _outcome(plan_shape(metadata, scan), query, settings.plan_tasks)

    return run_table_stage(run_folder, table, KIND, work)


def plan_shape(metadata: PlanningMetadata, scan: SimulatedScan) -> PlanShape:
    """What planning the scan reads and returns, and the request that its tokens would carry."""
    info = metadata.info
    manifests = metadata.manifests
    opened = np.isin(manifests["ordinal"].to_numpy(), scan.scanned_manifests)
    entries = sum(manifests[f"entries_{status}"].to_numpy() for status in ("added", "existing", "deleted"))
    content = manifests["content"].to_numpy()
    data = opened & (content == DATA)
    deletes = opened & (content != DATA)
    request: dict[str, Any] = {"use-snapshot-schema": info.schema.schema_id != info.metadata.current_schema_id}
    if info.snapshot_id is not None:
        request["snapshot-id"] = info.snapshot_id
    if not isinstance(scan.filter, AlwaysTrue):
        request["filter"] = to_iceberg_json(scan.filter)
    return PlanShape(
        table=table_identity(info.name.identifier),
        snapshot_id=info.snapshot_id or 0,
        scan=request,
        tasks=len(scan.data_rows),
        manifests=manifests["path"].filter(data).to_pylist(),
        entries=entries[data].tolist(),
        delete_manifests=int(deletes.sum()),
        delete_entries=int(entries[deletes].sum()),
    )


def _outcome(shape: PlanShape, query: HeaviestQuery, model: PlanTasksSettings) -> Outcome:
    batching = batch(shape.tasks, model.batch_size)
    replicas = model.replicas
    designs = compare_designs(shape, model.batch_size, replicas)
    data = {
        "query": asdict(query),
        **asdict(batching),
        "replicas": replicas,
        "plans_computed": asdict(plans_computed(batching.requests, replicas)),
        "plans_by_replicas": [
            {"replicas": count, **asdict(plans_computed(batching.requests, count))}
            for count in range(1, max(MAX_REPLICAS, replicas) + 1)
        ],
        "mitigations": _mitigations(shape, batching, replicas),
        "designs": [asdict(design) for design in designs],
        "plan": {
            "data_manifests": len(shape.manifests),
            "entries": sum(shape.entries),
            "delete_manifests": shape.delete_manifests,
            "delete_entries": shape.delete_entries,
            "bytes_per_task": shape.bytes_per_task,
            "bytes": plan_bytes(shape.tasks, shape.bytes_per_task),
        },
        "first_token": _first_token(shape, batching),
        "limits": list(LIMITS),
    }
    return Outcome(_headline(batching, replicas, designs), data)


def _mitigations(shape: PlanShape, batching: Batching, replicas: int) -> list[dict[str, Any]]:
    """Plans computed under each measure: what the closed form says, where it has one, and what concurrency makes."""
    held = plan_bytes(shape.tasks, shape.bytes_per_task)
    larger = batch(batching.tasks, 10 * batching.batch_size)
    local = Service(replicas)
    measures: list[tuple[str, Service, Batching, float | None]] = [
        ("no cache", replace(local, cache=CacheKind.NONE), batching, batching.requests),
        ("cache in each replica", local, batching, None),
        (
            "cache in each replica, concurrent requests coalesced",
            replace(local, coalesce=True),
            batching,
            plans_computed(batching.requests, replicas).local_cache_expected,
        ),
        ("all requests of a scan to one replica", replace(local, routing=Routing.AFFINITY), batching, 1),
        ("one cache for all replicas", replace(local, cache=CacheKind.SHARED), batching, 1),
        ("batches ten times as large, cache in each replica", local, larger, None),
    ]
    return [
        {
            "measure": name,
            "requests": cut.requests,
            "plans_expected": expected,
            "plans_simulated": _simulated(service, cut.requests, held),
        }
        for name, service, cut, expected in measures
    ]


def _simulated(service: Service, requests: int, held: int) -> float:
    load = Load(requests, client_threads=CLIENT_THREADS, plan_bytes=held)
    return mean_plans_computed(load, service, runs=min(50, max(3, _SIMULATED_REQUESTS // requests)))


def _first_token(shape: PlanShape, batching: Batching) -> str | None:
    """The first token of the plan response, as an example; none when everything fits into one response."""
    slices = batching.slices()[:1]
    return encode(OffsetToken(shape.table, *slices[0], shape.scan)) if slices else None


def _headline(batching: Batching, replicas: int, designs: list[DesignCost]) -> Headline:
    inline, offset, cached, ranges = designs
    return {
        "tasks": batching.tasks,
        "batch_size": batching.batch_size,
        "requests": batching.requests,
        "tokens": batching.tokens,
        "replicas": replicas,
        "plans_no_cache": offset.plans_computed,
        "plans_local_cache": cached.plans_computed,
        "manifests_inline": inline.manifests_opened,
        "manifests_no_cache": offset.manifests_opened,
        "manifests_local_cache": cached.manifests_opened,
        "manifests_entry_ranges": ranges.manifests_opened,
        "entries_inline": inline.entries_decoded,
        "entries_entry_ranges": ranges.entries_decoded,
        "peak_bytes_inline": inline.peak_response_bytes,
        "peak_bytes_batches": offset.peak_response_bytes,
        "cache_bytes": cached.server_bytes_held,
    }
