"""Advice on column statistics: the least that leaves every observed query's pruning as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.advice.metrics import ColumnAdvice, MetricsAdvice, advise_metrics
from planning_health.advice.observed import Observation, ObservedWorkload, observe
from planning_health.metadata import PlanningMetadata
from planning_health.planning.fewer_statistics import with_statistics
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "d", DateType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "twin", LongType()),
    NestedField(5, "idle", DoubleType()),
    NestedField(6, "key", LongType()),
)
COLUMNS = ("id", "d", "s", "twin", "idle", "key")


def file(number: int) -> File:
    lower: dict[str, Any] = {
        "id": 10 * number,
        "d": 19_000 + number // 4,
        "s": f"key-{number:03d}-aaaa",
        "twin": 10 * number,
        "idle": 0.5,
        "key": 0,
    }
    upper = lower | {"id": 10 * number + 9, "s": f"key-{number:03d}-zzzz", "twin": 10 * number + 9, "key": 9}
    return File(
        f"f{number}",
        (19_000 + number // 4,),
        lower=lower,
        upper=upper,
        values=dict.fromkeys(COLUMNS, 100),
        nulls=dict.fromkeys(COLUMNS, 0) | {"idle": 100 * (number % 2)},
    )


def table(properties: Mapping[str, str] | None = None) -> PlanningMetadata:
    """40 files of ten days, with 100 bytes of statistics for each column and file; ``s`` takes twice as much."""
    made = picture(
        SCHEMA, [spec((2, "day"))], [Manifest([file(n) for n in range(m, m + 10)]) for m in range(0, 40, 10)]
    )
    rows = made.manifests.to_pylist()
    for row in rows:
        row |= {"length": 8_000, "uncompressed_bytes": 16_000}
        row["statistics_bytes"] = [{"field_id": i, "bytes": 2_000 if i == 3 else 1_000} for i in range(1, 7)]
    metadata = replace(made, manifests=pa.Table.from_pylist(rows, schema=made.manifests.schema))
    if properties:
        document = metadata.info.metadata.model_copy(update={"properties": dict(properties)})
        metadata = replace(metadata, info=replace(metadata.info, metadata=document))
    return metadata


def workload(metadata: PlanningMetadata, wheres: Sequence[str], **more: Any) -> ObservedWorkload:
    name = metadata.info.name
    observed = [Observation("test", name.dotted, filter=parse_where(where, SCHEMA).expression) for where in wheres]
    return observe(name, SCHEMA, [*observed, *([Observation("test", name.dotted, **more)] if more else [])])


def advice(wheres: Sequence[str], *, budget: int = 0, properties: Mapping[str, str] | None = None, **more: Any) -> Any:
    metadata = table(properties)
    return advise_metrics(metadata, workload(metadata, wheres, **more), budget=budget)


def of(found: MetricsAdvice, column: str) -> ColumnAdvice:
    return next(item for item in found.columns if item.column == column)


def modes(found: MetricsAdvice) -> dict[str, str]:
    return {item.column: item.mode for item in found.columns}


def test_columns_that_nothing_uses_keep_nothing_and_partition_sources_stay() -> None:
    found = advice(["id = 55"])
    assert modes(found) == {"id": "full", "d": "full", "s": "none", "twin": "none", "idle": "none", "key": "none"}
    assert of(found, "d").why == "kept as it is: the table is partitioned by it"
    assert of(found, "s").statistics_bytes == 8_000
    assert of(found, "s").share == pytest.approx(8_000 / 64_000)
    assert found.default == "none"
    assert found.modes == {"id": "full", "d": "full"}
    assert found.metadata_bytes_after < found.metadata_bytes_before == 32_000


def test_what_pruning_a_column_buys_is_measured_with_and_without_it() -> None:
    pruning = of(advice(["id = 55", "id = 55", "id < 20"]), "id").pruning
    assert pruning is not None
    assert (pruning.files, pruning.files_without, pruning.filters) == (2 * 1 + 2, 3 * 40, 2)


def test_a_column_that_prunes_nothing_beside_others_is_given_up() -> None:
    found = advice(["key = 5", "d = DATE'2022-01-10'"])
    assert modes(found)["key"] == "none"
    assert of(found, "key").why == "with none of its statistics 1 observed filter(s) read no more files"


def test_of_two_columns_that_prune_the_same_files_one_stays() -> None:
    found = advice(["id = 55 AND twin = 55"])
    assert sorted((modes(found)["id"], modes(found)["twin"])) == ["full", "none"]
    assert [(item.files_before, item.files_after) for item in found.queries] == [(1, 1)]


@pytest.mark.parametrize(
    ("where", "mode"),
    [
        ("s LIKE 'key-0%'", "none"),  # all files begin with it
        ("s LIKE 'key-03%'", "truncate(7)"),  # with 6, the upper bound of file 29 is rounded up to key-03
        ("s LIKE 'key-035%'", "truncate(8)"),
        ("s = 'key-035-bb'", "truncate(7)"),
        ("s = 'key-035-aaaab'", "truncate(7)"),
        ("s = 'key-035'", "truncate(8)"),  # below every value of the file, which shorter bounds cannot tell
        ("s LIKE 'x%'", "truncate(1)"),
    ],
)
def test_text_bounds_are_as_short_as_the_observed_predicates_allow(where: str, mode: str) -> None:
    found = advice([where])
    assert modes(found)["s"] == mode
    assert [item.files_after for item in found.queries] == [item.files_before for item in found.queries]


def test_the_smallest_length_is_the_smallest() -> None:
    metadata = table()
    observed = workload(metadata, ["s = 'key-035'", "s LIKE 'key-03%'"])
    found = advise_metrics(metadata, observed)
    assert found is not None
    length = int(modes(found)["s"].removeprefix("truncate(").removesuffix(")"))
    reads = {
        n: _files(with_statistics(metadata, {"s": f"truncate({n})"}).metadata, observed) for n in (length - 1, length)
    }
    assert reads[length] == _files(metadata, observed)
    assert reads[length - 1] != reads[length]


def _files(metadata: PlanningMetadata, observed: ObservedWorkload) -> list[int]:
    planner = ScanPlanner(metadata)
    return [len(planner.plan(item.expression).data_rows) for item in observed.filters]


def test_nulls_are_told_by_counts() -> None:
    found = advice(["idle IS NOT NULL"])
    assert modes(found)["idle"] == "counts"
    assert [(item.files_before, item.files_after) for item in found.queries] == [(20, 20)]


def test_more_files_are_read_only_within_a_budget_and_then_said() -> None:
    exact, allowed = advice(["s LIKE 'key-035%'"]), advice(["s LIKE 'key-035%'"], budget=9)
    assert (modes(exact)["s"], modes(allowed)["s"]) == ("truncate(8)", "truncate(6)")
    assert [(item.files_before, item.files_after) for item in allowed.queries] == [(1, 10)]
    assert "but for the 9 more files allowed" in of(allowed, "s").why


def test_aggregates_are_uses_of_what_answers_them() -> None:
    found = advice([], bounds_of=frozenset({"id", "s"}), counts_of=frozenset({"key"}))
    assert modes(found) | {"d": "full"} == {
        "id": "full",
        "d": "full",
        "s": "none",  # Iceberg never answers MIN and MAX of text from bounds
        "twin": "none",
        "idle": "none",
        "key": "counts",
    }


def test_row_level_columns_and_hidden_values_keep_what_they_have() -> None:
    found = advice([], row_level=frozenset({"key"}), hidden=frozenset({"s"}))
    assert modes(found)["key"] == "full"
    assert modes(found)["s"] == "truncate(16)"
    assert of(found, "s").why == "kept as it is: observed filters use it with values that are not known"


def test_without_a_workload_there_is_no_advice() -> None:
    assert advice([]) is None
    assert advice([], unread="filter f(x) = 3 is about nothing of the table") is None


def test_properties_that_are_as_advised_stay_and_those_that_hinder_go() -> None:
    as_advised = {
        "write.metadata.metrics.default": "none",
        "write.metadata.metrics.column.id": "full",
        "write.metadata.metrics.column.d": "truncate(16)",
    }
    assert advice(["id = 55"], properties=as_advised).request is None
    gone = {"write.metadata.metrics.column.key": "full", "write.metadata.metrics.column.dropped": "full"}
    found = advice(["id = 55"], properties=gone)
    assert found.modes == {"id": "full", "d": "full", "dropped": "", "key": ""}


WHERES = (
    "id = 55",
    "id > 300 AND twin < 350",
    "s LIKE 'key-01%'",
    "s = 'key-020-b'",
    "s LIKE 'key-0%' AND key = 4",
    "idle IS NULL",
    "NOT (s LIKE 'key-02%')",
    "d = DATE'2022-01-10' OR s = 'zzz'",
    "twin IN (5, 55) AND id IN (5, 95)",
    "id IS NULL OR idle > 0.7",
)


@settings(deadline=None, max_examples=30)
@given(
    wheres=st.lists(st.sampled_from(WHERES), min_size=1, max_size=6),
    budget=st.sampled_from([0, 0, 3, 12]),
)
def test_no_observed_query_reads_more_than_the_budget_allows(wheres: list[str], budget: int) -> None:
    metadata = table()
    observed = workload(metadata, wheres)
    found = advise_metrics(metadata, observed, budget=budget)
    assert found is not None
    trimmed = with_statistics(metadata, {k: v for k, v in found.modes.items() if v}, default=found.default).metadata
    before, after = _files(metadata, observed), _files(trimmed, observed)
    assert all(now <= then + budget for then, now in zip(before, after, strict=True))
    assert [item.files_after for item in found.queries] == after
    assert sum(item.weight for item in found.queries) == len(wheres)
