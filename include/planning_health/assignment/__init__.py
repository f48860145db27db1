"""Work assignment: how many tasks a scan asks for, how its files are shared, and which workers they prefer.

Pure Python and NumPy; nothing here runs a query or talks to a worker.
"""

from planning_health.assignment.affinity import (
    HomeShare,
    MembershipChange,
    Ranking,
    TaskHints,
    home_share,
    membership_change,
    normalise_url,
    normalise_workers,
    rank_workers,
)
from planning_health.assignment.balance import (
    Assignment,
    MemoryEstimate,
    default_assignment,
    default_units,
    feeds,
    greedy_assignment,
    greedy_units,
    lower_bound,
    memory_estimate,
)
from planning_health.assignment.comparison import Balance, Comparison, compare
from planning_health.assignment.limits import AFFINITY_LIMITS, BALANCE_LIMITS
from planning_health.assignment.options import AssignmentOptions
from planning_health.assignment.routing import (
    AffinityMetrics,
    AffinityRouter,
    Dial,
    Placement,
    PlacementKind,
    RetryPolicy,
)
from planning_health.assignment.siphash import owners, siphash13
from planning_health.assignment.task_count import TaskCountHint, estimate_tasks, merge_hints
from planning_health.assignment.units import (
    PLANNING_MAX_FILES,
    PlannedWork,
    PlanningLimitError,
    UnitTable,
    collect_units,
    planned_work,
)

__all__ = [
    "AFFINITY_LIMITS",
    "BALANCE_LIMITS",
    "PLANNING_MAX_FILES",
    "AffinityMetrics",
    "AffinityRouter",
    "Assignment",
    "AssignmentOptions",
    "Balance",
    "Comparison",
    "Dial",
    "HomeShare",
    "MembershipChange",
    "MemoryEstimate",
    "Placement",
    "PlacementKind",
    "PlannedWork",
    "PlanningLimitError",
    "Ranking",
    "RetryPolicy",
    "TaskCountHint",
    "TaskHints",
    "UnitTable",
    "collect_units",
    "compare",
    "default_assignment",
    "default_units",
    "estimate_tasks",
    "feeds",
    "greedy_assignment",
    "greedy_units",
    "home_share",
    "lower_bound",
    "membership_change",
    "memory_estimate",
    "merge_hints",
    "normalise_url",
    "normalise_workers",
    "owners",
    "planned_work",
    "rank_workers",
    "siphash13",
]
