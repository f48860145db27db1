"""What the figures show, taken from the result files, with captions that state each figure's point.

Every figure is capped, so that the report of a large table stays small: at most ``MAX_SPANS`` manifests and
``MAX_BARS`` bars a panel; counts in the captions are always of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planning_health.reports.axis import Axis, Point, thinned
from planning_health.reports.model import (
    BarFigure,
    BarPanel,
    DepthBar,
    DepthFigure,
    DepthPanel,
    FieldFigures,
    Figures,
    LabelledBar,
    Number,
    RangeFigure,
    RangePanel,
    Span,
)
from planning_health.reports.reading import mapping, mappings, number, text, whole
from planning_health.wording import byte_size, counted, percentage, plain_number, visible, worker_name

MAX_SPANS: Final = 120
MAX_BARS: Final = 96
MAX_COLUMNS: Final = 8
MAX_TASKS: Final = 8
UNEVEN: Final = 1.1
"""Fullest task over the mean, from which on the figure of the tasks says something."""

MAX_PARTITION_FIGURES: Final = 2
_REPLICAS: Final = (1, 2, 3, 4, 6, 10)


@dataclass(frozen=True)
class Picture:
    """A table's health at one moment, as a panel of a figure."""

    title: str
    health: Mapping[str, Any]


@dataclass(frozen=True)
class _Manifest:
    lower: Point
    upper: Point
    label: str


@dataclass(frozen=True)
class _FieldPicture:
    """One partition field at one moment."""

    title: str
    manifests: list[_Manifest]
    delete_manifests: int
    series: list[tuple[Point, float]]
    mean: float | None
    worst: float | None


def table_figures(
    pictures: Sequence[Picture], assignment: Mapping[str, Any] | None, plan_tasks: Mapping[str, Any] | None
) -> Figures:
    """The figures of one table from its health (before a repair where there was one, and now) and simulations."""
    fields: list[FieldFigures] = []
    for spec_id, field in _fields(pictures):
        moments = [_field_picture(picture, spec_id, field) for picture in pictures]
        axis = Axis(_points(moments))
        ranges, depth = _range_figure(field, moments, axis), _depth_figure(field, moments, axis)
        if ranges or depth:
            panels = max(len(figure.panels) for figure in (ranges, depth) if figure)
            fields.append(FieldFigures(panels=panels, ranges=ranges, depth=depth))
    return Figures(
        fields=fields,
        columns=column_figure(pictures[-1].health) if pictures else None,
        assignment=assignment_figure(assignment or {}),
        affinity=affinity_figure(mapping((assignment or {}).get("affinity"))),
        plan_tasks=plan_tasks_figure(plan_tasks or {}),
    )


def _fields(pictures: Sequence[Picture]) -> list[tuple[int, str]]:
    """The partition fields whose manifests overlap most, at any of the moments."""
    depths: dict[tuple[int, str], float] = {}
    for picture in pictures:
        for overlap in mappings(picture.health.get("overlap")):
            key = (int(number(overlap.get("spec_id")) or 0), text(overlap.get("field")))
            depths[key] = max(depths.get(key, 0.0), number(overlap.get("mean")) or 0.0)
    return sorted(depths, key=lambda key: (-depths[key], key))[:MAX_PARTITION_FIGURES]


def _field_picture(picture: Picture, spec_id: int, field: str) -> _FieldPicture:
    manifests: list[_Manifest] = []
    for manifest in mappings(picture.health.get("manifests")):
        if number(manifest.get("spec_id")) != spec_id or manifest.get("content") not in (0, "data", None):
            continue
        for found in mappings(manifest.get("ranges")):
            lower = Point.of(found.get("lower"), found.get("lower_display"))
            upper = Point.of(found.get("upper"), found.get("upper_display"))
            if found.get("field") == field and lower and upper:
                label = f"{file_name(text(manifest.get('path')))}: {lower.display} to {upper.display}"
                manifests.append(_Manifest(lower, upper, label))
    deletes = sum(
        number(manifest.get("spec_id")) == spec_id and manifest.get("content") in (1, "deletes")
        for manifest in mappings(picture.health.get("manifests"))
    )
    overlap = _overlap(picture.health, spec_id, field)
    series = [
        (point, depth)
        for item in mappings(overlap.get("series"))
        if (point := Point.of(item.get("value"), item.get("display"))) and (depth := number(item.get("depth")))
    ]
    mean, worst = number(overlap.get("mean")), number(overlap.get("worst"))
    return _FieldPicture(picture.title, manifests, deletes, series, mean, worst)


def _overlap(health: Mapping[str, Any], spec_id: int, field: str) -> Mapping[str, Any]:
    for overlap in mappings(health.get("overlap")):
        if number(overlap.get("spec_id")) == spec_id and overlap.get("field") == field:
            return overlap
    return {}


def _points(moments: Sequence[_FieldPicture]) -> list[Point]:
    points = [
        point for moment in moments for manifest in moment.manifests for point in (manifest.lower, manifest.upper)
    ]
    return points + [point for moment in moments for point, _ in moment.series]


def file_name(path: str) -> str:
    """The last part of a path, made visible."""
    return visible(path.rsplit("/", 1)[-1])


def _lookup(moments: Sequence[_FieldPicture], axis: Axis) -> Point | None:
    """The partition value that is most expensive to look up at the first moment that has a series.

    Among equals the middle one is taken, so that the line does not stand at the axis' edge.
    """
    for moment in moments:
        if moment.series:
            worst = max(depth for _, depth in moment.series)
            candidates = sorted(
                (axis.number(point), point.display, point) for point, depth in moment.series if depth == worst
            )
            return candidates[len(candidates) // 2][2]
    return None


def _range_figure(field: str, moments: Sequence[_FieldPicture], axis: Axis) -> RangeFigure | None:
    lookup = _lookup(moments, axis)
    drawn = [moment for moment in moments if moment.manifests]
    if lookup is None or not drawn or max(len(moment.manifests) for moment in drawn) < 2:
        return None
    panels = [_range_panel(moment, axis, lookup) for moment in drawn]
    first, last = panels[0], panels[-1]
    caption = (
        f"Each bar is one manifest, from the lowest to the highest {field} it covers. A query for {lookup.display} "
        f"opens every bar that the line crosses: {first.crossed} of {counted(first.manifests, 'manifest')}"
    )
    caption += f" before, {last.crossed} of {last.manifests} after the repair." if len(panels) > 1 else "."
    if any(panel.manifests > len(panel.spans) for panel in panels):
        caption += f" At most {MAX_SPANS} bars are drawn, evenly picked."
    if deletes := drawn[-1].delete_manifests:
        caption += f" Delete manifests, which planning opens beside them, are not drawn: there are {deletes}."
    return RangeFigure(
        field=visible(field),
        lookup=lookup.display,
        lookup_at=round(axis.middle(lookup), 4),
        ticks=axis.ticks(),
        panels=panels,
        caption=visible(caption),
    )


def _range_panel(moment: _FieldPicture, axis: Axis, lookup: Point) -> RangePanel:
    at = axis.number(lookup)
    ordered = sorted(moment.manifests, key=lambda m: (axis.number(m.lower), axis.number(m.upper), m.label))
    crossed = [axis.number(m.lower) <= at <= axis.number(m.upper) for m in ordered]
    spans = [
        Span(
            start=round(axis.start(manifest.lower), 4),
            end=round(axis.end(manifest.upper), 4),
            label=manifest.label,
            crossed=is_crossed,
        )
        for manifest, is_crossed in zip(ordered, crossed, strict=True)
    ]
    return RangePanel(title=moment.title, manifests=len(spans), crossed=sum(crossed), spans=thinned(spans, MAX_SPANS))


def _depth_figure(field: str, moments: Sequence[_FieldPicture], axis: Axis) -> DepthFigure | None:
    drawn = [moment for moment in moments if moment.series]
    if not drawn:
        return None
    highest = max(depth for moment in drawn for _, depth in moment.series)
    if highest < 2:
        return None
    panels = [DepthPanel(title=m.title, mean=m.mean, worst=m.worst, bars=_depth_bars(m.series, axis)) for m in drawn]
    first, last = panels[0], panels[-1]
    caption = (
        f"How many manifests a query for one {field} opens: {_opens(first.mean)} on average, "
        f"{_opens(first.worst)} at worst"
    )
    caption += (
        f"; after the repair {_opens(last.mean)} on average, {_opens(last.worst)} at worst."
        if len(panels) > 1
        else ". 1 is the best there is."
    )
    return DepthFigure(
        field=visible(field), highest=highest, ticks=axis.ticks(), panels=panels, caption=visible(caption)
    )


def _opens(depth: float | None) -> str:
    return "not measured" if depth is None else plain_number(round(depth, 1))


def _depth_bars(series: Sequence[tuple[Point, float]], axis: Axis) -> list[DepthBar]:
    """The series in at most ``MAX_BARS`` stretches, each with the highest depth in it."""
    ordered = sorted(series, key=lambda item: axis.number(item[0]))
    size = -(-len(ordered) // MAX_BARS)
    bars: list[DepthBar] = []
    for begin in range(0, len(ordered), size):
        group = ordered[begin : begin + size]
        point, depth = max(group, key=lambda item: item[1])
        bars.append(
            DepthBar(
                start=round(axis.start(group[0][0]), 4),
                end=round(axis.end(group[-1][0]), 4),
                depth=depth,
                label=f"{point.display}: {plain_number(depth)}",
            )
        )
    return bars


def column_figure(health: Mapping[str, Any]) -> BarFigure | None:
    """Bytes of statistics by column, the largest first."""
    columns = [
        (visible(text(item.get("column")) or f"field {item.get('field_id')}"), size)
        for item in mappings(health.get("statistics_bytes"))
        if (size := number(item.get("bytes")))
    ]
    total = sum(size for _, size in columns)
    if len(columns) < 2 or not total:
        return None
    columns.sort(key=lambda column: (-column[1], column[0]))
    shown = columns[:MAX_COLUMNS]
    largest = shown[0][1]
    bars = [
        LabelledBar(label=name, value=f"{byte_size(size)} · {percentage(size / total)}", share=round(size / largest, 4))
        for name, size in shown
    ]
    told = (
        f"the {len(shown)} largest take {percentage(sum(size for _, size in shown) / total)}"
        if len(columns) > len(shown)
        else f"the largest, {shown[0][0]}, takes {percentage(largest / total)}"
    )
    caption = (
        f"The manifests carry {byte_size(total)} of statistics on {counted(len(columns), 'column')}, before "
        f"compression; {told}. "
        "Planning reads all of it, whichever column a query asks for."
    )
    return BarFigure(
        kind="columns", title="Metadata bytes by column", panels=[BarPanel(title="", bars=bars)], caption=caption
    )


def assignment_figure(data: Mapping[str, Any]) -> BarFigure | None:
    """Bytes per task, dealt out in turn (default) and largest file first (greedy); even tasks need no bars."""
    comparison = next(iter(mappings(data.get("comparisons"))), {})
    dealt, largest_first = _loads(comparison.get("default")), _loads(comparison.get("greedy"))
    default, greedy = [load for load, _ in dealt], [load for load, _ in largest_first]
    if min(len(default), len(greedy)) < 2 or not default[0]:
        return None
    title, tasks = "Bytes per task", len(default)
    if _skew(default) < UNEVEN:
        caption = (
            f"Over {tasks} tasks the fullest one reads {byte_size(default[0])}, {_skew_text(default)}: the work of a "
            "scan is evenly spread as it is."
        )
        return BarFigure(kind="assignment", title=title, panels=[], caption=caption)
    caption = (
        f"A scan ends when its fullest task ends. Over {tasks} tasks that one reads {byte_size(default[0])} "
        f"({_skew_text(default)}) when files are dealt out in turn, and {byte_size(greedy[0])} ({_skew_text(greedy)}) "
        "with greedy assignment."
    )
    if tasks > MAX_TASKS:
        caption += f" The {MAX_TASKS} fullest tasks are shown."
    panels = [
        _load_panel("Default: dealt out in turn", dealt, max(default[0], greedy[0])),
        _load_panel("Greedy: largest first", largest_first, max(default[0], greedy[0])),
    ]
    return BarFigure(kind="assignment", title=title, panels=panels, caption=caption)


def _loads(strategy: Any) -> list[tuple[Number, int | None]]:
    """Bytes and number of files of each task, the fullest first."""
    loads, files = (mapping(strategy).get(name) for name in ("loads", "files"))
    if not isinstance(loads, list):
        return []
    counts = files if isinstance(files, list) and len(files) == len(loads) else [None] * len(loads)
    tasks = [(number(load) or 0, whole(count)) for load, count in zip(loads, counts, strict=True)]
    return sorted(tasks, key=lambda task: -task[0])


def _skew(loads: Sequence[Number]) -> float:
    return loads[0] * len(loads) / (sum(loads) or 1)


def _skew_text(loads: Sequence[Number]) -> str:
    return f"{_skew(loads):.2f} times the mean"


def _load_panel(title: str, loads: Sequence[tuple[Number, int | None]], highest: Number) -> BarPanel:
    """Bars of one strategy; ``highest`` is the fullest task of all strategies, whose scale they share."""
    bars = [
        LabelledBar(
            label=f"task {rank}",
            value=byte_size(load) + ("" if files is None else f" · {counted(files, 'file')}"),
            share=round(load / highest, 4),
            emphasis=rank == 1,
        )
        for rank, (load, files) in enumerate(loads[:MAX_TASKS], start=1)
    ]
    return BarPanel(title=title, bars=bars)


def affinity_figure(data: Mapping[str, Any]) -> BarFigure | None:
    """Bytes read at their home worker, now and after a worker leaves or joins, and each worker's preferred tasks."""
    preferred = {worker_name(worker): whole(count) or 0 for worker, count in mapping(data.get("preferred")).items()}
    home = number(mapping(data.get("home")).get("fraction"))
    if len(preferred) < 2 or home is None:
        return None
    leaves, joins = mapping(data.get("one_leaves")), mapping(data.get("one_joins"))
    shares = [
        (f"now, {counted(len(preferred), 'worker')}", home),
        *_shares_after("one leaves", leaves),
        *_shares_after("one joins", joins),
    ]
    fullest = max(preferred.values()) or 1
    chosen = sorted(preferred, key=lambda worker: -preferred[worker])[:MAX_TASKS]
    caption = (
        "Affinity routing makes one worker the home of each file, and runs a task where most of its bytes are at home: "
        f"{percentage(home)} of the bytes are then read at their home. When a worker leaves or joins, some files get a "
        "new home; “old homes” counts the bytes that are still read where they were at home before."
    )
    if len(preferred) > MAX_TASKS:
        caption += f" The {MAX_TASKS} workers that most tasks prefer are shown."
    bars = [LabelledBar(label=name, value=percentage(share), share=round(share, 4)) for name, share in shares]
    workers = [
        LabelledBar(label=worker, value=counted(count, "task"), share=round(count / fullest, 4))
        for worker, count in preferred.items()
        if worker in chosen
    ]
    panels = [
        BarPanel(title="Bytes read at home", bars=bars),
        BarPanel(title="Tasks that prefer a worker", bars=workers),
    ]
    return BarFigure(kind="affinity", title="Files and their home workers", panels=panels, caption=caption)


def _shares_after(told: str, change: Mapping[str, Any]) -> list[tuple[str, Number]]:
    """Bytes at the homes of before and of after one change of the workers; nothing where it was not simulated."""
    homes = (("old homes", "at_old_home"), ("new homes", "share"))
    found = [(f"{told}: {name}", number(mapping(change.get(key)).get("fraction"))) for name, key in homes]
    return [(label, share) for label, share in found if share is not None]


def plan_tasks_figure(data: Mapping[str, Any]) -> BarFigure | None:
    """How often a planning server computes the plan of one scan, by number of replicas."""
    requests = int(number(data.get("requests")) or 0)
    by_replicas = mappings(data.get("plans_by_replicas"))
    if requests < 2 or not by_replicas:
        return None
    points = [(int(number(p.get("replicas")) or 0), number(p.get("local_cache_expected")) or 0.0) for p in by_replicas]
    bars = [
        LabelledBar(
            label=counted(replicas, "replica"), value=plain_number(round(plans, 2)), share=round(plans / requests, 4)
        )
        for replicas, plans in points
        if replicas in _REPLICAS
    ]
    bars.append(LabelledBar(label="no cache", value=plain_number(requests), share=1.0, emphasis=True))
    replicas, plans = next((point for point in points if point[0] == whole(data.get("replicas"))), points[-1])
    caption = (
        f"A planning server hands out this scan in {counted(requests, 'request')}, and computes the plan {requests} "
        f"times without a cache. With a cache in each of {counted(replicas, 'replica')} it is "
        f"{plain_number(round(plans, 1))} times on average; with one shared cache, or all requests of a scan sent to "
        "one replica, once."
    )
    return BarFigure(
        kind="plan_tasks", title="Plans computed per scan", panels=[BarPanel(title="", bars=bars)], caption=caption
    )
