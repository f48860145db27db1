"""Wrong metrics properties are found before anything is set; the difference and its undo are exact."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from tests.maintenance.pictures import NAME, picture

from planning_health.errors import InputError
from planning_health.maintenance.properties import (
    PropertyChange,
    inspect_metrics,
    is_mode,
    merge_changes,
    plan_properties,
)
from planning_health.maintenance.request import MaintenanceRequest

COLUMN = "write.metadata.metrics.column."


def plan(properties: dict[str, str] | None = None, **wanted: object):  # type: ignore[no-untyped-def]
    request = MaintenanceRequest.model_validate({"actions": ["set_properties"], **wanted})
    return plan_properties(picture([[[1]]], properties=properties).info, request)


@pytest.mark.parametrize("mode", ["none", "Counts", "FULL", "truncate(1)", "Truncate(16)", "truncate(2147483647)"])
def test_modes_that_iceberg_understands_are_accepted_in_any_case(mode: str) -> None:
    assert is_mode(mode)
    assert plan(metrics_default=mode).changes[0].after == mode.lower()


@pytest.mark.parametrize(
    "mode",
    ["off", "truncate(0)", "truncate(-1)", "truncate", "truncate(4) ", "truncate(9999999999)", "truncate(\u0663)"],
)
def test_modes_that_iceberg_ignores_silently_are_refused(mode: str) -> None:
    with pytest.raises(InputError, match=r"metrics mode .* is not one of none, counts, full or truncate\(n\)"):
        plan(metrics_default=mode)


def test_a_column_is_resolved_to_its_exact_case() -> None:
    keys = [change.key for change in plan(metrics_columns={"SITE": "full", "Place.lon": "none"}).changes]
    assert keys == [COLUMN + "Site", COLUMN + "place.Lon"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"nope": "full"}, r"column 'nope' does not exist\. Known: Site, d, id, place\.Lon, place\.lat"),
        ({"sitee": "full"}, r"column 'sitee' does not exist, did you mean 'Site'\? Known: Site, d"),
        ({"PLACE": "full"}, "column 'PLACE' has no values of its own; name its fields: place.lat, place.Lon"),
        ({"site": "full", "Site": "none"}, "columns 'site' and 'Site' are the same column 'Site'"),
        ({"id": "", "x": ""}, "column 'x' has no metrics property to remove; set are: none"),
        ({"id": "off", "nope": "full"}, "metrics mode 'off' of column 'id' is not one of .*; column 'nope' does not"),
    ],
)
def test_wrong_columns_are_all_named_and_nothing_is_planned(columns: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(metrics_columns=columns)


def test_only_differences_are_planned_with_their_undo() -> None:
    properties = {COLUMN + "id": "full", COLUMN + "d": "counts", "write.metadata.metrics.default": "none"}
    found = plan(
        properties,
        metrics_default="none",
        metrics_columns={"id": "truncate(4)", "d": "", "Site": "full"},
        target_manifest_bytes=65536,
    )
    assert found.commands(NAME) == [
        "ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('write.metadata.metrics.column.id' = 'truncate(4)', "
        "'write.metadata.metrics.column.Site' = 'full', 'commit.manifest.target-size-bytes' = '65536')",
        "ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS ('write.metadata.metrics.column.d')",
    ]
    assert found.undo(NAME) == [
        "ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('write.metadata.metrics.column.id' = 'full', "
        "'write.metadata.metrics.column.d' = 'counts')",
        "ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS ('write.metadata.metrics.column.Site', "
        "'commit.manifest.target-size-bytes')",
    ]
    assert not plan(properties, metrics_default="none").changes


def test_the_leftover_of_a_dropped_column_must_go_in_the_same_change() -> None:
    properties = {COLUMN + "gone": "full"}
    with pytest.raises(InputError, match=r"column\.gone is of a column that the table does not have"):
        plan(properties, metrics_default="none")
    changes = plan(properties, metrics_default="none", metrics_columns={"gone": ""}).changes
    assert [(change.key, change.after) for change in changes] == [
        ("write.metadata.metrics.default", "none"),
        (COLUMN + "gone", None),
    ]


def test_what_iceberg_ignores_in_a_tables_properties_is_noted() -> None:
    schema = Schema(*(NestedField(n, f"c{n}", LongType()) for n in range(1, 104)))
    notes = inspect_metrics(schema, {COLUMN + "c1": "off", COLUMN + "C2": "full"})
    assert [note.split(":")[0] for note in notes[:2]] == [COLUMN + "C2", COLUMN + "c1 = 'off' is not a mode"]
    assert "103 columns, but without write.metadata.metrics.default only the first 100 get statistics" in notes[2]
    assert inspect_metrics(schema, {"write.metadata.metrics.default": "truncate(16)"}) == []
    assert "is not a mode" in inspect_metrics(schema, {"write.metadata.metrics.default": "truncate(0)"})[0]


@pytest.mark.parametrize(
    ("earlier", "planned", "merged"),
    [
        (("a", "b"), None, ("a", "b")),  # committed, then killed
        (("a", "c"), ("a", "c"), ("a", "c")),  # killed before the commit
        (("a", "c"), ("b", "c"), ("b", "c")),  # killed before the commit, and somebody else has set it since
        (("a", "b"), ("b", "c"), ("a", "c")),  # committed, and started again with another value
        (None, ("a", None), ("a", None)),
    ],
)
def test_a_run_that_is_started_again_undoes_to_the_value_before_it(
    earlier: tuple[str, str] | None, planned: tuple[str, str | None] | None, merged: tuple[str, str | None]
) -> None:
    first, second = ([PropertyChange("k", *values)] if values else [] for values in (earlier, planned))
    assert merge_changes(first, second) == (PropertyChange("k", *merged),)
