"""Entries that are encoded again take the bytes that Iceberg's writer gave them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import fastavro
import pytest
from tests.metadata.avro_files import in_codec

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.identifiers import TableName
from planning_health.metadata import load, record_with_pyiceberg, save
from planning_health.metadata.avro_blocks import CODECS
from planning_health.metadata.manifest_encoding import (
    SAMPLED_BYTES,
    SAMPLED_MANIFESTS,
    EntrySamples,
    sample_budgets,
    sample_manifest,
)
from planning_health.planning.fewer_statistics import with_statistics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

NAMESPACE = "lake.test_manifest_encoding"


def test_manifests_are_sampled_evenly_within_the_budget() -> None:
    assert sample_budgets([]) == {}
    assert sample_budgets([0, 1]) == {0: SAMPLED_BYTES // 2, 1: SAMPLED_BYTES // 2}
    many = sample_budgets(range(1000))
    assert len(many) <= SAMPLED_MANIFESTS
    assert sum(many.values()) <= SAMPLED_BYTES
    assert max(many) > 900


def test_without_samples_no_size_is_told() -> None:
    samples = EntrySamples()
    assert samples.first(0, 0) is None
    assert samples.bytes_per_entry(0, 0) is None


def test_of_a_large_block_the_first_whole_entries_are_kept() -> None:
    schema = {"type": "record", "name": "entry", "fields": [{"name": "text", "type": "string"}]}
    records = [{"text": f"{number:0999}"} for number in range(1000)]
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, sync_interval=10_000_000)
    for codec in CODECS:
        row = sample_manifest("m.avro", 0, 0, in_codec(stream.getvalue(), codec), 50_000)
        assert row is not None
        (block,) = row["blocks"]
        assert (block["entries"], len(block["bytes"])) == (127, 127 * 1001)  # what 128,000 bytes hold whole
        (manifest,) = EntrySamples.of([row]).manifests
        assert list(manifest.entries) == records[:127]
    empty = io.BytesIO()
    fastavro.writer(empty, schema, [])
    assert sample_manifest("m.avro", 0, 0, empty.getvalue(), 50_000) is None


@pytest.mark.spark
def test_real_manifests_are_encoded_to_the_byte_and_without_statistics_about_as_small_as_real_ones(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path
) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    catalog = load_pyiceberg_catalog(settings, "lake")
    columns = ", ".join(f"c{number} STRING" for number in range(12))
    values = ", ".join(f"hex(xxhash64(id, {number}L))" for number in range(12))
    recordings = {}
    for name, mode in (("full", "full"), ("none", "none")):
        table = TableName.parse(f"{NAMESPACE}.{name}")
        spark.sql(
            f"CREATE TABLE {table.sql} (id BIGINT, {columns}) USING iceberg PARTITIONED BY (truncate(10, id)) "
            f"TBLPROPERTIES ('write.metadata.metrics.default' = '{mode}')"
        )
        spark.sql(f"INSERT INTO {table.sql} SELECT id, {values} FROM range(600)")
        recordings[name] = record_with_pyiceberg(catalog, table)
    full, none = recordings["full"], recordings["none"]

    (manifest,) = full.samples.manifests
    (length,) = full.manifests["length"].to_pylist()
    assert manifest.header_bytes + manifest.encoded_bytes(manifest.entries) == length

    change = with_statistics(full, {}, default="none")
    predicted, real = change.metadata.manifests["length"][0].as_py(), none.manifests["length"][0].as_py()
    assert change.sampled_entries == 60
    assert change.saved_bytes == {"default": length - predicted}
    assert predicted == pytest.approx(real, rel=0.05)

    save(full, str(tmp_path / "recording"))
    assert load(str(tmp_path / "recording")).samples.table.equals(full.samples.table)
