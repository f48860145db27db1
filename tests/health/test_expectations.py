"""The Great Expectations suites: what blocks a table, and what only tells of its health."""

from __future__ import annotations

import os
import sys

import pytest
from pyiceberg.types import DateType
from tests.health.builder import DELETED, Entry, TableBuilder

from planning_health.health.expectations import Validation, Validator
from planning_health.health.thresholds import resolve_thresholds
from planning_health.settings.models import TableRule


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator()


def table() -> TableBuilder:
    builder = TableBuilder({"d": DateType()}, [[("d", "day")]])
    builder.manifest(Entry((1,)), Entry((2,), status=DELETED))
    return builder.manifest(Entry((3,)), Entry((4,)), Entry((5,)))


def validate(validator: Validator, builder: TableBuilder, rule: TableRule | None = None) -> Validation:
    return validator.validate(builder.build(), resolve_thresholds(rule), [])


def broken(validation: Validation) -> set[str]:
    return {item.name for item in validation.integrity if not item.success}


def test_analytics_are_off(validator: Validator) -> None:
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert "posthog" not in sys.modules


def test_a_sound_measurement_blocks_nothing(validator: Validator) -> None:
    validation = validate(validator, table())
    assert (validation.blocking, validation.reason) == (False, None)


def test_an_empty_table_blocks_nothing(validator: Validator) -> None:
    assert not validate(validator, TableBuilder({"d": DateType()})).blocking


def test_counts_that_version_1_omits_block_nothing(validator: Validator) -> None:
    builder = table()
    for kind in ("added", "existing", "deleted"):
        builder.manifests[0][f"{kind}_files_count"] = None
    assert not validate(validator, builder).blocking


@pytest.mark.parametrize(
    ("damage", "expectation"),
    [
        ("miscounted", "deleted_entries_agree"),
        ("entry lost", "entries_complete"),
        ("manifest twice", "manifests_once"),
        ("summary too narrow", "summaries_contain_entries"),
        ("summary inverted", "summaries_in_order"),
        ("too many summaries", "summaries_fit_spec"),
        ("statistics larger than the manifest", "shares_in_bounds"),
    ],
)
def test_a_contradiction_blocks_the_table_and_is_named(validator: Validator, damage: str, expectation: str) -> None:
    builder = table()
    first, second = builder.manifests
    match damage:
        case "miscounted":
            first["deleted_files_count"] = 9
        case "entry lost":
            builder.files[0].pop()
        case "manifest twice":
            second["path"] = first["path"]
        case "summary too narrow":
            second["partitions"] = first["partitions"]
        case "summary inverted":
            (bounds,) = second["partitions"]
            second["partitions"] = [
                bounds | {"lower_bound": bounds["upper_bound"], "upper_bound": bounds["lower_bound"]}
            ]
        case "too many summaries":
            second["partitions"] = second["partitions"] * 2
        case _:
            second["statistics_bytes"] = [{"field_id": 1, "bytes": 20_000}]
    validation = validate(validator, builder)
    assert validation.blocking
    assert expectation in broken(validation)
    assert expectation in str(validation.reason)


def test_bad_health_is_told_and_does_not_block(validator: Validator) -> None:
    validation = validate(validator, table())
    failed = {item.name: item for item in validation.health if not item.success}
    assert failed.keys() == {"deleted_ratio_below_warning"}
    assert (failed["deleted_ratio_below_warning"].observed, failed["deleted_ratio_below_warning"].severity) == (
        0.5,
        "warning",
    )
    assert (validation.success, validation.blocking) == (False, False)


def test_the_health_suite_is_generated_from_the_tables_thresholds(validator: Validator) -> None:
    rule = TableRule.model_validate({"match": "*", "thresholds": {"deleted_ratio": {"warning": 0.6, "critical": 0.7}}})
    validation = validate(validator, table(), rule)
    assert validation.success
    assert "below 0.6" in {item.expected for item in validation.health if item.name == "deleted_ratio_below_warning"}


def test_what_was_not_measured_is_not_expected_of(validator: Validator) -> None:
    names = {item.name for item in validate(validator, TableBuilder({"d": DateType()})).health}
    assert not {name for name in names if name.startswith(("deleted_ratio", "overlap_depth", "partition_range"))}


def test_a_value_that_no_repair_can_improve_is_not_expected_of(validator: Validator) -> None:
    builder = TableBuilder({"d": DateType()}, [[("d", "day")]]).manifest(Entry((0,)), Entry((400,)))
    assert validate(validator, builder).success
