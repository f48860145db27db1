"""Trims of random tables of all types, specs and versions: queries read no file less, and of kept columns none more."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.planning.java_tables import JavaTable
from tests.planning.oracle import JavaPlanner, simulated
from tests.planning.random_predicates import PredicateMaker
from tests.planning.shapes import SCHEMA, SHAPES, fill, spec_of

from planning_health.maintenance.guards import spec_refusal
from planning_health.maintenance.proposals import used_specs
from planning_health.maintenance.rewrite import RewriteTask
from planning_health.maintenance.trim import rewrite
from planning_health.maintenance.trim.metrics_config import trim_rule
from planning_health.maintenance.trim.prediction import TrimPrediction, predict_trim
from planning_health.maintenance.trim.rule import WHOLE, TrimRule
from planning_health.maintenance.trim.verification import compare_trimmed
from planning_health.metadata import PlanningMetadata
from planning_health.planning.expressions import ALWAYS_TRUE, Expression
from planning_health.planning.scan import ScanPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMESPACE = "test_trim_planning"
PREDICATES = 20
TARGET = 9_000
TRIMMED = (
    "changed_columns",
    "deletion_vectors",
    "evolved_first_version",
    "first_version",
    "global_deletes",
    "identities",
    "nanoseconds",
    "truncated",
    "unpartitioned",
)
MODES = ("none", "counts", "full", "truncate(1)", "truncate(2)", "truncate(16)")


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


def random_properties(table: JavaTable, rng: random.Random) -> dict[str, str]:
    names = [table.schema.find_column_name(i) or "" for i in sorted(table.schema.field_ids)]
    chosen = {f"write.metadata.metrics.column.{name}": rng.choice(MODES) for name in rng.sample(names, 8)}
    return chosen | {"write.metadata.metrics.default": rng.choice(MODES)}


def trim(table: JavaTable, spec_id: int, before: PlanningMetadata, rule: TrimRule) -> TrimPrediction:
    prediction = predict_trim(before, spec_id, TARGET, (), rule)
    rewrite.trim_manifests(table.spark, table.java, prediction, RewriteTask(table.name, spec_id, (), "test").summary())
    table.refresh()
    return prediction


def unchanged_columns(table: JavaTable, rule: TrimRule) -> set[str]:
    """The columns whose statistics the rule leaves whole."""
    whole = {i for i, kept in rule.columns.items() if kept.length == WHOLE and i in table.schema.field_ids}
    return {table.schema.find_column_name(i) or "" for i in whole}


def plans(table: JavaTable, predicates: Mapping[str, Expression]) -> dict[str, dict[str, list[str]]]:
    planner = JavaPlanner(table.spark, table.java)
    return {text: planner.plan(predicate).files for text, predicate in predicates.items()}


def referenced(expression: Any) -> set[str]:
    """The columns that a filter names."""
    if hasattr(expression, "name"):
        return {expression.name}
    children = [getattr(expression, part) for part in ("left", "right", "child") if hasattr(expression, part)]
    return set().union(*map(referenced, children))


def with_null_partitions(metadata: PlanningMetadata) -> set[str]:
    """Files that Iceberg reads for nothing: it takes a null partition value for less than any literal.

    Once such a file stands beside others, its new manifest may be skipped with it.
    """
    rows = metadata.data_files.select(["file_path", "partition"]).to_pylist()
    return {row["file_path"] for row in rows if None in row["partition"]}


def same_layout(predicted: PlanningMetadata, real: PlanningMetadata) -> None:
    columns = ["manifest_ordinal", "position", "file_path", "status", "first_row_id"]
    columns += [name for name in predicted.data_files.column_names if "." in name]
    if real.info.format_version >= 3:
        columns.remove("first_row_id")  # files of an upgraded table get theirs
    assert predicted.data_files.select(columns).equals(real.data_files.select(columns))
    rows = predicted.manifests.drop_columns(["path", "length", "file_size", "sequence_number", "read_ms", "decode_ms"])
    summaries = ["partitions", "min_sequence_number", "existing_files_count", "existing_rows_count", "content"]
    assert rows.select(summaries).to_pylist() == real.manifests.select(summaries).to_pylist()
    assert predicted.manifests["length"].to_pylist() == pytest.approx(real.manifests["length"].to_pylist(), rel=0.05)


@pytest.mark.parametrize("shape", TRIMMED)
def test_a_trim_is_as_predicted_and_iceberg_plans_no_less(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    rng = random.Random(shape)  # noqa: S311 - the same choices each time
    table = SHAPES[shape](spark, f"lake.{NAMESPACE}")
    monkeypatch.setattr(rewrite, "COMPILED_FROM_BYTES", rng.choice([0, 1 << 40]))
    maker = PredicateMaker(table.schema, len(shape))
    predicates = {f"{number}": maker.expression(1) for number in range(PREDICATES)}
    first = before = table.record()
    planned = plans(table, predicates | {"all": ALWAYS_TRUE})
    rule = trim_rule(before, random_properties(table, rng))
    whole = unchanged_columns(table, rule)
    trimmed = [spec_id for spec_id in used_specs(before) if spec_refusal(before, spec_id) is None]
    for spec_id in trimmed:
        prediction = trim(table, spec_id, before, rule)
        after = table.record()
        report = compare_trimmed(before, after, spec_id, rule)
        assert report.success, report.failures()
        same_layout(prediction.metadata, after)
        before = after
    again = plans(table, predicates | {"all": ALWAYS_TRUE})
    assert again["all"] == planned["all"]
    nulls = with_null_partitions(first)
    for text, predicate in predicates.items():
        assert planned[text].keys() - nulls <= again[text].keys(), predicate
        assert all(deletes == planned[text].get(path, deletes) for path, deletes in again[text].items())
        if referenced(predicate) <= whole:
            assert again[text].keys() - nulls == planned[text].keys() - nulls, predicate
        assert simulated(ScanPlanner(before).plan(predicate)).files == again[text]


@pytest.mark.parametrize(
    ("codec", "written"),
    [("uncompressed", "null"), ("gzip", "deflate"), ("snappy", "snappy"), ("zstd", "zstandard")],
)
def test_manifests_have_the_codec_of_the_tables_own_commits_and_are_as_large_as_predicted(
    spark: SparkSession, codec: str, written: str
) -> None:
    properties = {"write.manifest.compression-codec": codec}
    table = JavaTable(spark, f"lake.{NAMESPACE}.codec_{codec}", SCHEMA, spec_of((8, "day")), **properties)
    fill(table, seed=3, commits=2)
    before = table.record()
    planned = plans(table, {"all": ALWAYS_TRUE})
    predicted = trim(table, 0, before, trim_rule(before, {"write.metadata.metrics.default": "counts"}))
    manifests = table.record().manifests
    assert set(manifests["codec"].to_pylist()) == {written}
    assert sum(manifests["length"].to_pylist()) == pytest.approx(
        sum(predicted.metadata.manifests["length"].to_pylist()), rel=0.02
    )
    assert plans(table, {"all": ALWAYS_TRUE}) == planned


def test_a_uuid_partition_is_refused(spark: SparkSession) -> None:
    table = SHAPES["odd_identities"](spark, f"lake.{NAMESPACE}")
    assert "UUID" in str(spec_refusal(table.record(), 0))
