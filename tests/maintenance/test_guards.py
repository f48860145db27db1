"""Guards: each refuses or warns with its reason, and an ordinary table passes them all."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DateType, NestedField, UUIDType
from tests.maintenance.pictures import picture, table_metadata, with_info

from planning_health.maintenance.guards import Environment, check_table, refusals, spec_refusal

WIDE = [[[1], [2]], [[1], [2]]]
HERE = Environment(iceberg_version="1.12.0", catalog_type="jdbc")


def test_an_ordinary_table_passes() -> None:
    assert check_table(picture(WIDE), HERE) == []
    assert spec_refusal(picture(WIDE), 0) is None


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"encryption.key-id": "k"}, "encrypted"),
        ({"planning-health.managed-by": "amoro"}, "maintained by 'amoro'"),
        ({"self-optimizing.enabled": "TRUE"}, "maintained by Amoro"),
    ],
)
def test_properties_can_refuse(properties: dict[str, str], reason: str) -> None:
    assert reason in refusals(check_table(picture(WIDE, properties=properties), HERE))[0]


def test_our_own_name_as_the_manager_is_no_obstacle() -> None:
    assert check_table(picture(WIDE, properties={"planning-health.managed-by": "planning-health"}), HERE) == []


@pytest.mark.parametrize(("version", "refused"), [("1.11.0", True), ("1.9.2", True), ("1.12.0", False), ("2.0", False)])
def test_v3_needs_a_runtime_that_keeps_row_ids(version: str, refused: bool) -> None:
    guards = check_table(picture(WIDE, version=3), Environment(iceberg_version=version))
    assert bool(refusals(guards)) == refused
    assert not refusals(check_table(picture(WIDE, version=2), Environment(iceberg_version=version)))


def test_a_wap_branch_and_another_branch_refuse_and_a_hadoop_catalog_warns() -> None:
    odd = Environment(iceberg_version="1.12.0", wap_branch="audit", catalog_type="hadoop")
    guards = check_table(with_info(picture(WIDE), ref="audit"), odd)
    assert [(guard.name, guard.level) for guard in guards] == [
        ("branch", "refuse"),
        ("wap_branch", "refuse"),
        ("hadoop_catalog", "warn"),
    ]


def test_an_unknown_transform_refuses() -> None:
    spec = PartitionSpec(PartitionField(2, 1000, parse_transform("zorder"), "z"), spec_id=0)
    assert "unknown transform" in refusals(check_table(picture([], spec=spec), HERE))[0]
    assert "unknown transform" in str(spec_refusal(picture([], spec=spec), 0))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (Schema(NestedField(1, "x", DateType())), "source column of partition field 'd_day' was dropped"),
        (Schema(NestedField(2, "d", UUIDType())), "UUID partitions"),
    ],
)
def test_specs_on_which_icebergs_action_fails_are_refused(schema: Schema, reason: str) -> None:
    transform = "identity" if "UUID" in reason else "day"
    spec = PartitionSpec(PartitionField(2, 1000, parse_transform(transform), "d_day"), spec_id=0)
    metadata = with_info(picture(WIDE), metadata=table_metadata(spec, schema=schema))
    assert reason in str(spec_refusal(metadata, 0))


def test_manifests_without_file_counts_are_refused() -> None:
    metadata = picture(WIDE)
    table = metadata.manifests
    column = table.schema.get_field_index("added_files_count")
    nulls = pa.nulls(len(table), table.schema.field(column).type)
    old = replace(metadata, manifests=table.set_column(column, table.schema.field(column), nulls))
    assert "no file counts" in str(spec_refusal(old, 0))
    assert "spec 4 does not exist" in str(spec_refusal(metadata, 4))


def test_a_v1_table_warns_that_the_driver_copies_manifests() -> None:
    assert [guard.name for guard in check_table(picture(WIDE, version=1), HERE)] == ["driver_copies"]
    inherits = {"compatibility.snapshot-id-inheritance.enabled": "true"}
    assert check_table(picture(WIDE, version=1, properties=inherits), HERE) == []
