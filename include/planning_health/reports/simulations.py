"""The simulations of a table's heaviest query as small tables: how tasks share the scan, how a server hands it out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planning_health.reports.model import Number, Simulation
from planning_health.reports.reading import mapping, mappings, number, text, texts, whole
from planning_health.wording import (
    NOT_MEASURED,
    byte_size,
    counted,
    percentage,
    plain_number,
    visible,
    worker_name,
)

MOST_NAMED_WORKERS: Final = 8
"""Workers whose preferred tasks are written out; of more, the least and the most."""

_DESIGNS: Final = {
    "everything inline": "One response holds everything",
    "offset tokens, no cache": "Batches by position, no cache",
    "offset tokens, plan cache": "Batches by position, a cache in each replica",
    "entry ranges": "Batches by entries of manifests",
}


def simulations(assignment: Mapping[str, Any], plan_tasks: Mapping[str, Any]) -> list[Simulation]:
    """The small tables of one table's ``assignment`` and ``plan_tasks`` results; a result without work has none."""
    return [found for found in (_shared_work(assignment), _handed_out(plan_tasks)) if found]


def limits(*results: Mapping[str, Any]) -> list[str]:
    """What the simulations of these results cannot say, each sentence once."""
    return list(dict.fromkeys(visible(limit) for result in results for limit in texts(result.get("limits"))))


def _shared_work(data: Mapping[str, Any]) -> Simulation | None:
    planned, comparisons = mapping(data.get("planned")), mappings(data.get("comparisons"))
    files = whole(planned.get("files"))
    if not files or not comparisons:
        return None
    split = mappings(mapping(data.get("split")).get("comparisons"))
    affinity = mapping(data.get("affinity"))
    rows = [
        [
            plain_number(whole(item.get("tasks")) or 0) + (" (as configured)" if item is comparisons[0] else ""),
            _fullest(mapping(item.get("default"))),
            _fullest(mapping(item.get("greedy"))),
            _size(item.get("lower_bound")),
            _fullest(mapping(parts.get("greedy"))),
        ]
        for item, parts in zip(comparisons, [*split, *({} for _ in comparisons)], strict=False)
    ]
    tasks = [whole(item.get("tasks")) or 0 for item in comparisons]
    _, dealt, greedy, bound, _ = rows[0]
    return Simulation(
        kind="assignment",
        title="How tasks would share the heaviest query",
        text=(
            f"{_query(data)} reads {counted(files, 'file')} of {_size(planned.get('bytes'))} in all. A distributed "
            "engine gives each task some of the files, and the query ends when the fullest task does; “2 × the mean” "
            "is twice what a task reads on average."
            f"{_wanted(mapping(data.get('task_hint')))}"
        ),
        columns=[
            "Tasks",
            "Fullest task, files dealt out in turn",
            "Fullest task, largest files first (greedy)",
            "Best that whole files allow",
            "Fullest task, files split (greedy)",
        ],
        rows=[row for _, row in sorted(zip(tasks, rows, strict=True))],
        notes=[*_split_note(data), *_affinity_notes(affinity), *_limit_note(data)],
        summary=(
            f"{counted(files, 'file')} over {counted(tasks[0], 'task')}: the fullest reads {dealt} when files are "
            f"dealt out in turn, {greedy} with the largest first, {bound} at best{_at_home(affinity)}"
        )
        if files > tasks[0]
        else "",
    )


def _query(data: Mapping[str, Any]) -> str:
    query = mapping(data.get("query"))
    return f"The query “{visible(text(query.get('name')))}”" if query.get("where") else "A read of the whole table"


def _wanted(hint: Mapping[str, Any]) -> str:
    tasks = whole(hint.get("tasks"))
    if tasks is None:
        return ""
    workers = counted(whole(hint.get("workers")) or 0, "worker")
    return f" By its size the scan asks for {counted(tasks, 'task')} on {workers}."


def _fullest(balance: Mapping[str, Any]) -> str:
    """``64 MB (2.8 × the mean)``."""
    makespan, skew = number(balance.get("makespan")), number(balance.get("skew"))
    if makespan is None:
        return NOT_MEASURED
    return byte_size(makespan) + (f" ({plain_number(round(skew, 2))} × the mean)" if skew is not None else "")


def _size(value: Any) -> str:
    found = number(value)
    return NOT_MEASURED if found is None else byte_size(found)


def _split_note(data: Mapping[str, Any]) -> list[str]:
    split = mapping(data.get("split"))
    target, parts = number(split.get("target_bytes")), whole(split.get("parts"))
    if target is None or parts is None:
        return []
    return [
        f"“Files split” cuts files between their row groups, towards the table's target of {byte_size(target)}; a file "
        f"of one row group stays whole. That makes {counted(parts, 'part')}, the largest of "
        f"{_size(split.get('largest_part_bytes'))}."
    ]


def _limit_note(data: Mapping[str, Any]) -> list[str]:
    message = text(mapping(data.get("planning_limit")).get("message"))
    return [visible(message)] if message else []


def _at_home(affinity: Mapping[str, Any]) -> str:
    """The shares of bytes at home, in short."""
    shares = [
        f"{percentage(share)} {when}"
        for key, when in (("one_leaves", "when a worker leaves"), ("one_joins", "when one joins"))
        if (share := number(mapping(mapping(affinity.get(key)).get("share")).get("fraction"))) is not None
    ]
    home = number(mapping(affinity.get("home")).get("fraction"))
    return (
        ""
        if home is None
        else f"; with affinity routing {', '.join([f'{percentage(home)} of the bytes at home', *shares])}"
    )


def _affinity_notes(affinity: Mapping[str, Any]) -> list[str]:
    home = number(mapping(affinity.get("home")).get("fraction"))
    workers = texts(affinity.get("workers"))
    if home is None or not workers:
        return []
    notes = [
        f"With affinity routing on {counted(len(workers), 'worker')}, {percentage(home)} of the bytes are read at the "
        "home of their file."
    ]
    for change, told in (("one_leaves", "When one worker leaves"), ("one_joins", "When one more joins")):
        found = mapping(affinity.get(change))
        kept = number(mapping(found.get("at_old_home")).get("fraction"))
        then = number(mapping(found.get("share")).get("fraction"))
        if kept is not None and then is not None:
            notes.append(
                f"{told}, {counted(whole(found.get('moved_keys')) or 0, 'file')} and "
                f"{counted(whole(found.get('moved_tasks')) or 0, 'task')} move: {percentage(kept)} of the bytes are "
                f"read at their old home, {percentage(then)} at their new one."
            )
    return [*notes, *_preferred(mapping(affinity.get("preferred")))]


def _preferred(counts: Mapping[str, Any]) -> list[str]:
    tasks = {worker_name(worker): whole(count) or 0 for worker, count in counts.items()}
    if not tasks:
        return []
    if len(tasks) > MOST_NAMED_WORKERS:
        fewest, most = min(tasks.values()), max(tasks.values())
        return [f"Tasks that prefer a worker: {plain_number(fewest)} to {plain_number(most)} each."]
    return [f"Tasks that prefer a worker: {', '.join(f'{worker} {count:,}' for worker, count in tasks.items())}."]


def _handed_out(data: Mapping[str, Any]) -> Simulation | None:
    designs, tasks = mappings(data.get("designs")), whole(data.get("tasks"))
    requests, replicas = whole(data.get("requests")), whole(data.get("replicas"))
    if not tasks or not designs or requests is None or replicas is None:
        return None
    ways = {text(design.get("design")): design for design in designs}
    computed = mapping(data.get("plans_computed"))
    batches = whole(data.get("batch_size")) or 0
    return Simulation(
        kind="plan_tasks",
        title="How a planning server would hand out the same query",
        text=(
            f"A server that plans for its clients hands out {counted(tasks, 'file')}"
            + (f" in batches of {plain_number(batches)}" if batches else " at once")
            + f", here from {counted(replicas, 'replica')}: {counted(requests, 'request')} a scan."
            + ("" if requests > 1 else " The plan fits into one response, so that the first three ways are the same.")
        ),
        columns=[
            "Way",
            "Requests",
            "Plans computed",
            "Manifests opened",
            "Entries decoded",
            "Largest response",
            "Memory held",
        ],
        rows=[
            [
                _DESIGNS.get(name, visible(name)),
                *(
                    _count(way.get(key))
                    for key in ("requests", "plans_computed", "manifests_opened", "entries_decoded")
                ),
                _size(way.get("peak_response_bytes")),
                _size(way.get("server_bytes_held")),
            ]
            for name, way in ways.items()
        ],
        notes=list(dict.fromkeys(visible(text(design["note"])) for design in designs if design.get("note"))),
        summary=""
        if requests < 2
        else (
            f"{counted(requests, 'request')} a scan; plans computed: {_count(computed.get('no_cache'))} without a "
            f"cache, {_count(computed.get('local_cache_expected'))} on average with a cache in each of "
            f"{counted(replicas, 'replica')}, {_count(computed.get('affinity_cache'))} with a shared cache"
        ),
    )


def _count(value: Any) -> str:
    found: Number | None = number(value)
    return NOT_MEASURED if found is None else plain_number(round(found, 2))
