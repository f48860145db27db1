"""Server-side scan planning with plan-tasks, as a model: batches, tokens, plan caches and entry ranges.

Pure Python; what serves requests is in the package `service`.
"""

from planning_health.plan_tasks.batching import BATCH_SIZE, Batching, TaskTable, batch, total_order
from planning_health.plan_tasks.cache_model import (
    BYTES_PER_TASK,
    CACHE_ENTRIES,
    CACHE_EXPIRY_SECONDS,
    PlansComputed,
    distinct_replicas,
    plan_bytes,
    plans_computed,
)
from planning_health.plan_tasks.cache_simulation import (
    CacheKind,
    Load,
    Outcome,
    Routing,
    Service,
    mean_plans_computed,
    simulate,
)
from planning_health.plan_tasks.designs import DesignCost, PlanShape, compare_designs
from planning_health.plan_tasks.entry_ranges import MAX_MANIFESTS_PER_TOKEN, Range, RangePlan, entry_ranges
from planning_health.plan_tasks.token import (
    EntryRange,
    ForeignTokenError,
    InvalidTokenError,
    OffsetToken,
    PastTheEndError,
    RangeToken,
    Token,
    check_table,
    decode,
    encode,
    from_payload,
    read_scan,
    table_identity,
)

__all__ = [
    "BATCH_SIZE",
    "BYTES_PER_TASK",
    "CACHE_ENTRIES",
    "CACHE_EXPIRY_SECONDS",
    "MAX_MANIFESTS_PER_TOKEN",
    "Batching",
    "CacheKind",
    "DesignCost",
    "EntryRange",
    "ForeignTokenError",
    "InvalidTokenError",
    "Load",
    "OffsetToken",
    "Outcome",
    "PastTheEndError",
    "PlanShape",
    "PlansComputed",
    "Range",
    "RangePlan",
    "RangeToken",
    "Routing",
    "Service",
    "TaskTable",
    "Token",
    "batch",
    "check_table",
    "compare_designs",
    "decode",
    "distinct_replicas",
    "encode",
    "entry_ranges",
    "from_payload",
    "mean_plans_computed",
    "plan_bytes",
    "plans_computed",
    "read_scan",
    "simulate",
    "table_identity",
    "total_order",
]
