"""What a simulated assignment cannot know: sentences that every output of this package carries."""

from __future__ import annotations

BYTES_ARE_AN_ESTIMATE = (
    "Costs are candidate file bytes. They are not decoded memory, not the byte ranges that a reader requests, "
    "not CPU cost and not the size of the filtered output."
)
BALANCE_IS_NOT_TIME = "Loads compare planned work. No query was run: no speed-up is measured and none is claimed."
AFFINITY_IS_BEST_EFFORT = (
    "Affinity is best effort. A task that reads many files has one preferred worker, so the share of bytes read at "
    "their home falls towards 1/workers; membership changes and failover send the same file to other workers."
)
HOMES_HOLD_PER_KEY = (
    "Removing a worker that is not the home of a file keeps that file's home. This does not hold for a task of "
    "several files: its preferred worker can change when another worker leaves."
)
HASH_MAY_CHANGE = (
    "Homes follow SipHash-1-3 with the key (0, 0), as Rust's DefaultHasher computes it today. Rust does not promise "
    "this hash across releases: an upgrade of the engine can move every home."
)
NO_CACHE_WAS_INSPECTED = (
    "Preferred placements count the workers that accepted a task. No cache was inspected; they say nothing of "
    "cached data."
)
BALANCE_LIMITS: tuple[str, ...] = (BYTES_ARE_AN_ESTIMATE, BALANCE_IS_NOT_TIME)
"""The limits of an assignment of files to tasks."""

AFFINITY_LIMITS: tuple[str, ...] = (
    BYTES_ARE_AN_ESTIMATE,
    AFFINITY_IS_BEST_EFFORT,
    HOMES_HOLD_PER_KEY,
    HASH_MAY_CHANGE,
    NO_CACHE_WAS_INSPECTED,
)
"""The limits of a routing of tasks to workers."""
