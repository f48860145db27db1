"""The calculators behind ``planning-health plan-tasks``: plain values in, one JSON value out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from planning_health.errors import InputError
from planning_health.plan_tasks import token
from planning_health.plan_tasks.batching import BATCH_SIZE, batch
from planning_health.plan_tasks.cache_model import plans_computed
from planning_health.plan_tasks.entry_ranges import entry_ranges
from planning_health.plan_tasks.token import MAX_INT64


def batching(tasks: int, batch_size: int = BATCH_SIZE, replicas: int = 3) -> dict[str, Any]:
    """How one plan is delivered, and how often it is computed.

    Args:
        tasks: file scan tasks of the plan.
        batch_size: tasks of one response; 0 for all.
        replicas: server processes.

    Raises:
        InputError: a number out of its range.
    """
    for name, value in (("tasks", tasks), ("replicas", replicas)):
        if value > MAX_INT64:
            raise InputError(f"{name} {value}: expected at most {MAX_INT64}")
    cut = batch(tasks, batch_size)
    return {
        "inline": cut.inline,
        "tokens": cut.tokens,
        "requests": cut.requests,
        "last_batch": cut.last_batch,
        "plans_computed": asdict(plans_computed(cut.requests, replicas)),
    }


def encode(payload: object) -> str:
    """The token of a payload, ``{"table", "offset", "limit", "scan"}`` or with ``ranges``.

    Raises:
        InputError: the payload is not one that a token can carry.
    """
    try:
        return token.encode(token.from_payload(payload))
    except RecursionError:
        raise InputError("payload nested too deeply: expected one that a token can carry") from None


def decode(text: str) -> dict[str, Any]:
    """The payload of a token.

    Raises:
        InputError: this server would not have issued the token.
    """
    return token.decode(text).payload()


def ranges(entries: Sequence[int], batch_size: int) -> dict[str, Any]:
    """Batches of entry ranges over manifests with these entry counts, and what reading them costs.

    Raises:
        InputError: a number out of its range, or more ranges than ``entry_ranges`` makes.
    """
    plan = entry_ranges(entries, batch_size)
    return {
        "batches": [[[part.manifest, part.start, part.end] for part in batch] for batch in plan.batches],
        "opens": plan.opens,
        "entries_decoded_range_stop": plan.decoded_to_range_end,
        "entries_decoded_whole": plan.decoded_whole,
    }
