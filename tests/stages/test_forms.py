"""From a form's fields to a request: whatever a person types is validated, and named when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder, write_bytes
from planning_health.settings import SettingsDocument
from planning_health.stages.forms import maintenance_request, what_if_settings

FORM: dict[str, Any] = {
    "table": "lake.sales.orders",
    "actions": ["rewrite_manifests"],
    "dry_run": True,
    "approval": True,
    "spec_id": None,
    "sort_by": [],
    "target_manifest_bytes": None,
    "metrics_default": None,
    "metrics_columns": None,
}


@pytest.fixture
def settings() -> SettingsDocument:
    return SettingsDocument.model_validate(
        {
            "catalogs": {"lake": {"properties": {"type": "jdbc"}}},
            "tables": [{"match": "lake.sales.*", "queries": [{"name": "configured", "where": "a = 1"}]}],
        }
    )


def test_the_form_as_it_opens_is_a_dry_run_of_a_rewrite() -> None:
    table, request = maintenance_request(FORM)
    assert str(table) == "lake.sales.orders"
    assert request.dry_run
    assert request.rewrites_manifests
    assert not request.sets_properties


def test_column_modes_are_read_one_a_line_even_for_odd_column_names() -> None:
    lines = ["customer_id = truncate(16)", "", "SKU = code = counts", "note ="]
    _, request = maintenance_request(FORM | {"actions": ["set_properties"], "metrics_columns": lines})
    assert request.metrics_columns == {"customer_id": "truncate(16)", "SKU = code": "counts", "note": ""}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"table": "orders"}, "table name 'orders' is not of the form"),
        ({"table": None}, "table name '' is not of the form"),
        ({"table": "lake.s.t; DROP TABLE x"}, None),
        ({"spec_id": -1}, "spec_id: Input should be greater than or equal to 0"),
        ({"actions": ["expire_snapshots"]}, "actions.0: Input should be 'set_properties'"),
        ({"actions": ["set_properties"]}, "needs metrics modes or a manifest target size"),
        ({"metrics_columns": ["customer_id"]}, "metrics_columns: 'customer_id' is not of the form column = mode"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], message: str | None) -> None:
    if message is None:  # an odd name, but a name: it travels quoted
        assert maintenance_request(FORM | fields)[0].sql == "`lake`.`s`.`t; DROP TABLE x`"
        return
    with pytest.raises(InputError) as raised:
        maintenance_request(FORM | fields)
    assert message in str(raised.value)


def test_what_if_predicates_replace_the_configured_queries_of_that_table_only(settings: SettingsDocument) -> None:
    fields = {"table": "lake.sales.`a*b`", "predicates": [" x = 1 ", "", "y > 2"], "workers": 7, "batch_size": 0}
    table, asked = what_if_settings(settings, fields)
    rule = asked.rule_for(table)
    assert rule is not None
    assert [query.where for query in rule.queries] == ["x = 1", "y > 2"]
    assert asked.assignment.workers == 7
    assert asked.plan_tasks.batch_size == 0
    _, other = what_if_settings(settings, {"table": "lake.sales.axxb"})
    unaffected = asked.rule_for(what_if_settings(other, {"table": "lake.sales.axxb"})[0])
    assert unaffected is not None
    assert [query.name for query in unaffected.queries] == ["configured"]


def test_what_if_without_anything_uses_the_settings(settings: SettingsDocument) -> None:
    assert what_if_settings(settings, {"table": "lake.sales.orders", "predicates": []})[1] == settings


@pytest.mark.parametrize("fields", [{"workers": 0}, {"strategy": "random"}, {"batch_size": -1}, {"replicas": "many"}])
def test_what_if_names_the_wrong_field(settings: SettingsDocument, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(fields))):
        what_if_settings(settings, {"table": "lake.sales.orders"} | fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"predicates": ["ordred_on = DATE'2026-01-01'"]},
            r"predicates: .* column 'ordred_on' .*mean 'ordered_on'\?",
        ),
        (
            {"spec": "days(nothing)"},
            r"spec: .* no column 'nothing' when it was measured 2026-03.*\. It had ",
        ),
        ({"metrics_columns": ["lost = none"]}, "metrics_columns: .* no column 'lost'"),
    ],
)
def test_an_unknown_column_is_refused_by_the_newest_measurement(
    settings: SettingsDocument, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    measured(tmp_path, "1", "2026-01-01T00:00:00+00:00", "nothing", "lost", "ordred_on")
    measured(tmp_path, "2", "2026-03-01T00:00:00+00:00", "ordered_on", "Customer Id")
    known = settings.model_copy(update={"home": str(tmp_path)})
    with pytest.raises(InputError, match=message):
        what_if_settings(known, {"table": "lake.sales.orders", **fields})
    what_if_settings(known, {"table": "lake.sales.orders", "predicates": ["ORDERED_ON IS NULL", "`customer id` = 1"]})


def test_columns_of_a_table_that_was_never_measured_are_left_to_spark(
    settings: SettingsDocument, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "planning_health")
    what_if_settings(
        settings.model_copy(update={"home": str(tmp_path)}), {"table": "lake.sales.orders", "predicates": ["a = 1"]}
    )
    assert "lake.sales.orders was never measured: its columns are checked once Spark has read it" in caplog.text


def measured(home: Path, run: str, at: str, *columns: str) -> None:
    """Leaves of a recording what tells the columns."""
    folder = RunFolder(str(home), "planning_health_weekly", run)
    fields = [NestedField(number, name, StringType()) for number, name in enumerate(columns, start=1)]
    document = {"measured_at": at, "schema": Schema(*fields).model_dump(mode="json", by_alias=True)}
    write_bytes(
        f"{folder.metadata_url(TableName.parse('lake.sales.orders'))}/table.json", json.dumps(document).encode()
    )
