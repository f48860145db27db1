"""Signals equal what Iceberg Java says of the same manifests, over all transforms, specs and format versions."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, IntegerType, NestedField
from tests.planning.java_tables import FileMaker, JavaTable
from tests.planning.oracle import JavaPlanner
from tests.planning.shapes import SCHEMA, SHAPES, evolve, fill, spec_of

from planning_health.health.analysis import analyse
from planning_health.health.dangling import dangling_deletes
from planning_health.health.measures import Measures
from planning_health.health.thresholds import resolve_thresholds
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import DELETED
from planning_health.planning.expressions import ALWAYS_TRUE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMESPACE = "lake.test_signals_oracle"
METRICS = ("column-sizes", "value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")
TIMES = {"year": "%Y", "month": "%Y-%m", "day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")


class JavaSnapshot:
    """The current snapshot as Iceberg Java reads it; nothing of the product's own decoding is used."""

    def __init__(self, table: JavaTable) -> None:
        self.table = table
        self.java = table.java
        self._jvm: Any = table.spark._jvm
        self._iceberg = self._jvm.org.apache.iceberg
        self._lists = self._iceberg.relocated.com.google.common.collect.Lists
        self.specs: Any = self.java.specs()

    @cached_property
    def manifests(self) -> list[Any]:
        return list(self._lists.newArrayList(self.java.currentSnapshot().allManifests(self.java.io())))

    def of(self, content: int, spec_id: int | None = None) -> list[Any]:
        found = [manifest for manifest in self.manifests if manifest.content().id() == content]
        return [manifest for manifest in found if spec_id in (None, manifest.partitionSpecId())]

    @cached_property
    def live_files(self) -> dict[str, list[dict[str, Any]]]:
        """Live entries of each manifest, in Iceberg's JSON."""
        files = self._iceberg.ManifestFiles
        result = {}
        for manifest in self.manifests:
            open_ = files.read if manifest.content().id() == 0 else files.readDeleteManifest
            entries = self._lists.newArrayList(open_(manifest, self.java.io(), self.specs))
            result[manifest.path()] = [self._document(manifest, entry) for entry in entries]
        return result

    def _document(self, manifest: Any, entry: Any) -> dict[str, Any]:
        spec = self.specs.get(manifest.partitionSpecId())
        if not (spec.isUnpartitioned() and spec.fields()):
            document: dict[str, Any] = json.loads(self._iceberg.ContentFileParser.toJson(entry, spec))
            return document
        return {  # Iceberg writes no JSON for files of a spec of void fields only
            "spec-id": spec.specId(),
            "partition": None,
            "record-count": entry.recordCount(),
            "file-size-in-bytes": entry.fileSizeInBytes(),
        }

    def files(self, content: int, spec_id: int | None = None) -> list[dict[str, Any]]:
        return [file for manifest in self.of(content, spec_id) for file in self.live_files[manifest.path()]]

    def depths(self, spec_id: int, position: int) -> dict[str, int]:
        """For each distinct live value the manifests that Iceberg's evaluator keeps for equality with it."""
        spec = self.specs.get(spec_id)
        fields = spec.partitionType().fields()
        field = fields[position]
        floating = field.type().typeId().toString() in ("FLOAT", "DOUBLE")
        schema = self._iceberg.Schema(fields)
        rows = [file["partition"] for file in self.files(0, spec_id) if file["partition"] is not None]
        texts = {json.dumps(row[position]) for row in rows} - {"null"}
        depths = {}
        for text in texts:
            nan = floating and text in ('"NaN"', "NaN")
            term = f'"term": {json.dumps(field.name())}'
            equal = f'{{"type": "is-nan", {term}}}' if nan else f'{{"type": "eq", {term}, "value": {text}}}'
            parsed = self._iceberg.expressions.ExpressionParser.fromJson(equal, schema)
            evaluator = self._iceberg.expressions.ManifestEvaluator.forPartitionFilter(parsed, spec, True)
            depths[text] = sum(evaluator.eval(manifest) for manifest in self.of(0, spec_id))
        return depths

    @cached_property
    def summaries(self) -> dict[str, list[Any]]:
        """Partition summaries by manifest as Spark shows them."""
        rows = self.table.spark.sql(
            f"SELECT path, partition_summaries FROM {self.table.name.metadata_table_sql('manifests')}"
        )
        return {row["path"]: row["partition_summaries"] for row in rows.collect()}


@dataclass
class Compared:
    java: JavaSnapshot
    metadata: PlanningMetadata

    @cached_property
    def health(self) -> dict[str, Any]:
        return analyse(self.metadata, resolve_thresholds(None))

    def signal(self, name: str, scope_key: str = "") -> float | None:
        (value,) = [
            item["value"]
            for item in self.health["signals"]
            if (item["signal"], item["scope_key"]) == (name, scope_key) and item["scope"] != "column"
        ]
        return None if value is None else float(value)

    def fields(self) -> Iterator[tuple[dict[str, Any], int]]:
        """The measured fields and their positions in their specs."""
        seen: Counter[int] = Counter()
        for field in self.health["overlap"]:
            yield field, seen[field["spec_id"]]
            seen[field["spec_id"]] += 1


def _remove(table: JavaTable, files: list[dict[str, Any]]) -> None:
    """Removes data files, which leaves DELETED entries (none that Iceberg's JSON cannot say: NaN, only void)."""
    update = table.java.newDelete()
    for file in files:
        if file["partition"] is not None and "NaN" not in file["partition"]:
            update.deleteFile(table.content_file(file))
    update.commit()
    table.refresh()


def _of_spec(*fields: tuple[int, str], version: int) -> Callable[[Any, str], JavaTable]:
    def make(spark: SparkSession, namespace: str) -> JavaTable:
        name = f"fields_{'_'.join(str(source) for source, _ in fields)}"
        table = JavaTable(spark, f"{namespace}.{name}", SCHEMA, spec_of(*fields), version=version)
        fill(table, seed=44)
        return table

    return make


TABLES = {
    **SHAPES,
    "times": _of_spec((2, "identity"), (6, "identity"), (8, "identity"), (9, "identity"), version=1),
    "void": _of_spec((3, "void"), (10, "identity"), version=1),
    "fixed": _of_spec((12, "identity"), (2, "identity"), version=2),
    "longs": _of_spec((3, "identity"), (8, "hour"), version=2),
}
"""All shapes of the planning comparison, and identity and void of what they leave out."""


@pytest.fixture(scope="module", params=TABLES)
def compared(request: pytest.FixtureRequest, spark: SparkSession) -> Compared:
    table = TABLES[request.param](spark, NAMESPACE)
    table.refresh()
    _remove(table, JavaSnapshot(table).files(0)[::4])
    return Compared(JavaSnapshot(table), table.record())


def test_counts_bytes_and_ratios(compared: Compared) -> None:
    java = compared.java
    assert compared.signal("manifests") == len(java.manifests)
    assert compared.signal("manifest_bytes") == sum(manifest.length() for manifest in java.manifests)
    assert compared.signal("data_files") == len(java.files(0))
    assert compared.signal("data_bytes") == sum(file["file-size-in-bytes"] for file in java.files(0))
    assert compared.signal("snapshots") == len(list(java.java.snapshots()))
    for spec_id in {manifest.partitionSpecId() for manifest in java.manifests}:
        assert compared.signal("data_manifests", str(spec_id)) == len(java.of(0, spec_id))
        assert compared.signal("delete_manifests", str(spec_id)) == len(java.of(1, spec_id))
    for row, manifest in zip(compared.health["manifests"], java.manifests, strict=True):
        counts = [manifest.addedFilesCount(), manifest.existingFilesCount(), manifest.deletedFilesCount()]
        expected = counts[2] / sum(counts) if manifest.content().id() == 0 else None
        assert (row["path"], row["entries"], row["deleted_ratio"]) == (manifest.path(), sum(counts), expected)


def test_overlap_depth_is_what_an_equality_lookup_opens(compared: Compared) -> None:
    java = compared.java
    for field, position in compared.fields():
        depths = java.depths(field["spec_id"], position)
        assert Counter(point["depth"] for point in field["series"]) == Counter(depths.values()), field["field"]
        assert field["values"] == len(depths)
        assert field["manifests"] == len(java.of(0, field["spec_id"]))
        if depths:
            values = np.array(list(depths.values()))
            assert field["mean"] == pytest.approx(values.mean())
            assert (field["worst"], field["p95"]) == (values.max(), pytest.approx(np.percentile(values, 95)))
            others = field["manifests"] - 1
            assert field["clustering_ratio"] == pytest.approx(1 - (values.mean() - 1) / others if others else 1)
        else:
            assert [field[name] for name in ("mean", "p95", "worst", "clustering_ratio")] == [None] * 4


def test_bounds_and_ranges_are_those_of_the_manifests_table(compared: Compared) -> None:
    for row in compared.health["manifests"]:
        shown = compared.java.summaries[row["path"]]
        assert len(row["ranges"]) == len(shown)
        for measured, summary in zip(row["ranges"], shown, strict=True):
            assert measured["contains_null"] == summary["contains_null"]
            for name in ("lower", "upper"):
                _assert_same_value(measured, measured[f"{name}_display"], summary[f"{name}_bound"])
            lower, upper = (summary["lower_bound"], summary["upper_bound"])
            days = _days(measured["transform"], lower, upper)
            assert measured["range_days"] == (None if days is None else pytest.approx(days)), measured


def _assert_same_value(field: dict[str, Any], ours: str | None, theirs: str | None) -> None:
    """Iceberg shows a missing bound as the text 'null'; Java and Python write 1e300 differently."""
    if ours is None:
        assert theirs in (None, "null")
    elif ours != theirs:
        assert field["transform"] == "identity"
        mine, java = float(ours), float(theirs or "nothing")
        assert (mine, math.copysign(1, mine)) == (java, math.copysign(1, java))


def _days(transform: str, lower: str | None, upper: str | None) -> float | None:
    if transform not in TIMES or lower in (None, "null") or upper in (None, "null"):
        return None
    first, last = (datetime.strptime(str(text), TIMES[transform]) for text in (lower, upper))
    return (last - first).total_seconds() / 86_400


def test_delete_files_and_rows(compared: Compared) -> None:
    deletes, data = compared.java.files(1), compared.java.files(0)
    rows = sum(file["record-count"] for file in deletes)
    assert compared.signal("delete_files") == len(deletes)
    assert compared.signal("delete_rows") == rows
    assert compared.signal("delete_files_per_data_file") == len(deletes) / len(data)
    assert compared.signal("delete_rows_per_data_file") == rows / len(data)
    per_partition = Counter((file["spec-id"], json.dumps(file["partition"])) for file in deletes)
    assert compared.signal("delete_files_per_partition") == max(per_partition.values(), default=0)


def test_statistics_bytes_are_those_of_the_metric_maps(compared: Compared) -> None:
    manifests = compared.metadata.manifests.to_pylist()
    for row, manifest in zip(manifests, compared.java.manifests, strict=True):
        files = compared.java.live_files[manifest.path()]
        if manifest.deletedFilesCount() or any(file["partition"] is None for file in files):
            continue  # Java's reader shows live entries only
        expected: Counter[int] = Counter()
        for file in files:
            for metric in METRICS:
                entries = file.get(metric, {"keys": [], "values": []})
                for key, value in zip(entries["keys"], entries["values"], strict=True):
                    expected[key] += _avro_size(key) + _avro_size(value)
        assert {item["field_id"]: item["bytes"] for item in row["statistics_bytes"]} == expected
        assert sum(expected.values()) <= row["uncompressed_bytes"]
    total = sum(item["bytes"] for row in manifests for item in row["statistics_bytes"])
    assert (
        compared.signal("statistics_bytes")
        == total
        == sum(item["bytes"] for item in compared.health["statistics_bytes"])
    )
    assert 0 < (compared.signal("statistics_share") or 0) < 1


def _avro_size(value: int | str) -> int:
    """Bytes of a number, or of bytes given as hexadecimal text, in Avro."""
    if isinstance(value, str):
        return _avro_size(len(value) // 2) + len(value) // 2
    return max(1, math.ceil((value << 1 if value >= 0 else (-value << 1) - 1).bit_length() / 7))


def test_what_java_wrote_contradicts_nothing(compared: Compared) -> None:
    integrity = Measures(compared.metadata).integrity
    assert (integrity.entries_outside, integrity.inverted_summaries, integrity.duplicate_files) == (0, 0, 0)
    assert integrity.wrong_lengths == []
    assert all(problem.width == [] for problem in integrity.summaries)


def test_no_delete_file_that_a_scan_attaches_is_called_dangling(compared: Compared) -> None:
    plan = JavaPlanner(compared.java.table.spark, compared.java.java).plan(ALWAYS_TRUE)
    attached = {path for deletes in plan.files.values() for path in deletes}
    assert not attached & _dangling(compared.metadata)


def _dangling(metadata: PlanningMetadata) -> set[str]:
    mask = dangling_deletes(Measures(metadata).picture)
    return set(metadata.delete_files.filter(mask)["file_path"].to_pylist())


@pytest.mark.parametrize("version", [2, 3])
def test_dangling_deletes_are_those_that_no_scan_attaches(spark: SparkSession, version: int) -> None:
    """One partition was compacted, one lost a file, one never had data; without bounds nothing else is pruned."""
    schema = Schema(NestedField(1, "n", IntegerType()))
    table = JavaTable(spark, f"{NAMESPACE}.dangling_{version}", schema, spec_of((1, "identity")), version=version)
    maker = FileMaker(table, seed=1)
    files = [_in_partition(maker.data_file(), n) for n in (1, 1, 2, 2, 3)]
    table.append(files)
    deletes = [
        maker.position_deletes(0, file, one_path=False) if version == 2 else maker.deletion_vector(0, file)
        for file in files
    ]
    equality = [_in_partition(maker.equality_deletes(0, [1]), n) for n in (1, 2, 4)]
    table.row_delta([*deletes, *equality])
    table.append([_in_partition(maker.data_file(), 1)])
    _remove(table, files[:3])
    metadata = table.record()
    live = metadata.delete_files.filter(pc.not_equal(metadata.delete_files["status"], DELETED))
    plan = JavaPlanner(spark, table.java).plan(ALWAYS_TRUE)
    attached = {path for paths in plan.files.values() for path in paths}
    assert _dangling(metadata) == set(live["file_path"].to_pylist()) - attached
    assert attached


def _in_partition(file: dict[str, Any], n: int) -> dict[str, Any]:
    return {key: value for key, value in file.items() if key not in METRICS} | {"partition": [n]}


def test_a_spec_whose_source_column_was_dropped_is_detected_and_still_decoded(spark: SparkSession) -> None:
    table = JavaTable(spark, f"{NAMESPACE}.dropped_source", SCHEMA, spec_of((10, "identity"), (6, "month")), version=2)
    fill(table, seed=9)
    evolve(table, lambda java: java.updateSpec().removeField("p0"))
    evolve(table, lambda java: java.updateSchema().deleteColumn("s"))
    fill(table, seed=10)
    health = analyse(table.record(), resolve_thresholds(None))
    findings = {finding["id"]: finding for finding in health["findings"]}
    assert "p0 from s in spec 0 (s, months(dt))" in findings["dropped_source_fields"]["evidence"]
    summaries = JavaSnapshot(table).summaries
    for row in health["manifests"]:
        if row["spec_id"] == 0:
            month = row["ranges"][1]
            assert [month["lower_display"], month["upper_display"]] == list(summaries[row["path"]][1][2:4])


def test_the_shapes_hold_null_and_nan_partitions_and_deleted_entries(spark: SparkSession) -> None:
    """Otherwise the comparisons above would say nothing about them."""
    metadata = JavaTable.load(spark, f"{NAMESPACE}.identities").record()
    assert DELETED in metadata.data_files["status"].to_pylist()
    specs = Measures(metadata).picture.specs
    assert any((values.codes == -1).any() for spec in specs for values in spec.values)
    floating = [
        values
        for spec in specs
        for key, values in zip(spec.keys, spec.values, strict=True)
        if isinstance(key.value_type, FloatType | DoubleType)
    ]
    assert any(values.distinct.nan.any() for values in floating)
