"""Before, predicted and after of proposals and actions as comparable rows, and one sentence about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from planning_health.reports.model import Comparison, Number
from planning_health.reports.reading import mappings, number, text
from planning_health.wording import byte_size, counted, joined, plain_number, relative, visible

_MAX_QUERIES: Final = 8
_UNCHANGED: Final = 0.005
"""A number that differs by less is shown as the same, so it did not move."""

_SCALARS: Final = (
    ("manifests", "Manifests", "manifests"),
    ("metadata_bytes", "Metadata size", "bytes"),
    ("statistics_bytes", "Statistics", "bytes"),
    ("deleted_entries", "Entries of removed files", "count"),
    ("delete_manifests", "Delete manifests", "manifests"),
)


def predicted_effect(predicted: Mapping[str, Any], next_append: Mapping[str, Any] | None = None) -> list[Comparison]:
    """The rows of a proposal: before and predicted, and after the next append where that is predicted, too."""
    later: dict[str, Number | None] = {key: number((next_append or {}).get(key)) for key, _, _ in _SCALARS}
    later |= {_overlap_key(item): number(item.get("mean")) for item in mappings((next_append or {}).get("overlap"))}
    return [row.model_copy(update={"next_append": later.get(row.key)}) for row in effect({}, predicted, {})]


def effect(before: Mapping[str, Any], predicted: Mapping[str, Any], after: Mapping[str, Any]) -> list[Comparison]:
    """The rows of an action: each number before it, as it was predicted, and after it.

    Rows without any number are left out; a missing number is "not measured".
    """
    rows = [
        Comparison(
            key=key,
            label=label,
            unit=unit,
            before=_first(number(before.get(key)), number(predicted.get(f"{key}_before"))),
            predicted=_first(number(predicted.get(f"{key}_after")), number(predicted.get(key))),
            after=number(after.get(key)),
        )
        for key, label, unit in _SCALARS
    ]
    rows += _listed("overlap", before, predicted, after, "mean", _overlap_key, _overlap_label, "manifests")
    opened = _listed("queries", before, predicted, after, "manifests", _query_key, _query_label, "manifests")
    read = _listed("queries", before, predicted, after, "metadata_bytes", _read_key, _read_label, "bytes")
    rows += [row for pair in list(zip(opened, read, strict=True))[:_MAX_QUERIES] for row in pair]
    return [row for row in rows if _tells(row)]


def _tells(row: Comparison) -> bool:
    """Whether a row says anything: it moves or was to move, or it holds a prediction against what came true."""
    known = [value for value in (row.before, row.predicted, row.after) if value is not None]
    is_checked = row.off is not None and row.key.startswith(("metadata_bytes", "query"))
    if row.key == "manifests" or is_checked or not known:
        return bool(known)
    return max(known) - min(known) > _UNCHANGED * max(abs(value) for value in known)


def _first(*values: Number | None) -> Number | None:
    return next((value for value in values if value is not None), None)


def _overlap_key(item: Mapping[str, Any]) -> str:
    return f"overlap.{item.get('spec_id')}.{item.get('field')}"


def _overlap_label(item: Mapping[str, Any]) -> str:
    return f"Manifests opened by a query for one {visible(text(item.get('field')))}, mean"


def _query_key(item: Mapping[str, Any]) -> str:
    return f"query.{item.get('name')}"


def _query_label(item: Mapping[str, Any]) -> str:
    return f"Manifests opened by the query {visible(text(item.get('name')))}"


def _read_key(item: Mapping[str, Any]) -> str:
    return f"query_bytes.{item.get('name')}"


def _read_label(item: Mapping[str, Any]) -> str:
    return f"Metadata read by the query {visible(text(item.get('name')))}"


def _listed(
    name: str,
    before: Mapping[str, Any],
    predicted: Mapping[str, Any],
    after: Mapping[str, Any],
    value: str,
    key_of: Callable[[Mapping[str, Any]], str],
    label_of: Callable[[Mapping[str, Any]], str],
    unit: str,
) -> list[Comparison]:
    """Rows of a list whose items are told apart by ``key_of``, from all three sides."""
    labels: dict[str, str] = {}
    values: dict[tuple[str, str], Number | None] = {}
    for side, data in (("before", before), ("predicted", predicted), ("after", after)):
        for item in mappings(data.get(name)):
            key = key_of(item)
            labels.setdefault(key, label_of(item))
            if side == "predicted":
                values[key, "predicted"] = _first(number(item.get(f"{value}_after")), number(item.get(value)))
                values.setdefault((key, "before"), number(item.get(f"{value}_before")))
            else:
                values[key, side] = number(item.get(value))
    return [
        Comparison(
            key=key,
            label=label,
            unit=unit,
            before=values.get((key, "before")),
            predicted=values.get((key, "predicted")),
            after=values.get((key, "after")),
        )
        for key, label in labels.items()
    ]


def effect_sentence(rows: list[Comparison], *, measured: bool) -> str:
    """The change in words: the numbers that move most for people; empty when nothing is known.

    Args:
        rows: the comparisons.
        measured: whether to tell the numbers after the action, or the predicted ones.
    """
    told: list[str] = []
    best = _most_gained(rows, measured=measured)
    chosen = [row for row in rows if row.key in ("manifests", "metadata_bytes")]
    for row in [*chosen, *([best] if best else [])]:
        end = _end(row, measured)
        if row.before is None or end is None or row.before == end:
            continue
        told.append(_moved(row, row.before, end))
    return joined(told)


def append_sentence(rows: list[Comparison]) -> str:
    """What the next append is predicted to undo of a repair; empty where the gain stays."""
    undone = [
        _moved(row, row.predicted, row.next_append)
        for row in rows
        if row.predicted is not None and row.next_append is not None
        if row.undone_by_append and row.key.startswith("overlap.")
    ]
    return (
        f"The next append is predicted to merge manifests again (as Spark does, not PyIceberg): {joined(undone)}"
        if undone
        else ""
    )


def lookup_sentence(rows: list[Comparison]) -> str:
    """What the largest measured change means for a query; empty when no lookup became cheaper."""
    best = _most_gained(rows, measured=True)
    if best is None or best.before is None or best.after is None or best.after >= best.before:
        return ""
    now, then = round(best.after, 1), round(best.before, 1)
    return f"a query for one {_field(best)} opens {counted(now, 'manifest')} instead of {plain_number(then)}"


def _most_gained(rows: list[Comparison], *, measured: bool) -> Comparison | None:
    overlaps = [row for row in rows if row.key.startswith("overlap.")]
    return max(overlaps, key=lambda row: (row.before or 0) - (_end(row, measured) or 0), default=None)


def _field(row: Comparison) -> str:
    return visible(row.key.split(".", 2)[2])


def _end(row: Comparison, measured: bool) -> Number | None:
    return row.after if measured else row.predicted


def _moved(row: Comparison, before: Number, after: Number) -> str:
    if row.key == "metadata_bytes":
        return f"metadata {byte_size(before)} → {byte_size(after)} ({relative(before, after)})"
    shown = f"{plain_number(round(before, 1))} → {plain_number(round(after, 1))}"
    if row.key == "manifests":
        return f"{shown} manifests"
    return f"{shown} manifests opened by a query for one {_field(row)}"
