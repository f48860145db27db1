"""What-ifs of a recorded table: each alternative tells what each predicate reads before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.maintenance.pictures import DAYS_AND_SITE, picture

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.metadata import save
from planning_health.metadata.model import files_schema
from planning_health.metadata.store import delete_files_recorded
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.forms import what_if_request, what_if_settings
from planning_health.stages.table_stage import MEASUREMENT
from planning_health.stages.what_if import WhatIfRequest, what_if, what_if_document

METADATA = picture([[[day, site] for day in range(4) for site in "abcd"] for _ in range(4)], spec=DAYS_AND_SITE)
QUERIES = [Query(name="one_day", where="d = DATE'1970-01-02'"), Query(name="one_site", where="Site = 'c'")]
TABLE = TableName.parse("lake.sales.orders")


def manifests_after(alternative: dict) -> dict[str, int]:  # type: ignore[type-arg]
    return {item["name"]: item["after"]["data_manifests"] for item in alternative["predicates"]}


def test_a_rewrite_is_always_predicted_with_the_asked_size_and_order() -> None:
    request = WhatIfRequest(target_manifest_bytes=10_000, sort_by=["Site"])
    (alternative,) = what_if_document(METADATA, QUERIES, request)["alternatives"]
    assert alternative["id"] == "rewrite_manifests"
    assert "10,000 bytes, clustered by Site" in alternative["title"]
    assert manifests_after(alternative) == {"one_day": 4, "one_site": 1}
    (by_all_fields,) = what_if_document(METADATA, QUERIES, WhatIfRequest(target_manifest_bytes=10_000))["alternatives"]
    assert manifests_after(by_all_fields) == {"one_day": 1, "one_site": 4}


def test_statistics_and_another_spec_are_predicted_when_asked_for() -> None:
    request = WhatIfRequest(spec="Site", metrics_default="none", metrics_columns={"d": "full"})
    found = what_if_document(METADATA, QUERIES, request)["alternatives"]
    assert [item["id"] for item in found] == ["rewrite_manifests", "metrics", "partition_spec"]
    assert found[1]["title"] == "Statistics default = none, d = full"
    assert any("scaled" in note for note in found[1]["notes"])
    assert found[2]["predicates"][0]["before"]["data_manifests"] == 4


def test_a_sort_field_that_no_spec_has_is_an_input_error() -> None:
    with pytest.raises(InputError, match="'nope' are not partition fields"):
        what_if_document(METADATA, QUERIES, WhatIfRequest(sort_by=["nope"]))


def test_the_step_writes_its_result_and_a_misfit_fails_with_the_reason(tmp_path: Path) -> None:
    settings = SettingsDocument.model_validate({"catalogs": {"lake": {"properties": {"type": "jdbc"}}}})
    folder = RunFolder(str(tmp_path), "planning_what_if", "r")
    no_deletes = files_schema(delete_files_recorded(METADATA.info.recorded_field_ids)).empty_table()
    save(replace(METADATA, delete_files=no_deletes), folder.metadata_url(TABLE))
    folder.write_result(MEASUREMENT, table=TABLE, table_uuid=METADATA.info.table_uuid, data={})
    done = what_if(settings, folder, TABLE, WhatIfRequest(spec="unpartitioned"))
    assert done.status == "ok", done.reason
    assert done.headline["alternatives"] == 2
    assert folder.require_result("what_if", TABLE).data["alternatives"][1]["title"] == "Partitioned by unpartitioned"
    failed = what_if(settings, folder, TABLE, WhatIfRequest(metrics_columns={"nope": "none"}))
    assert (failed.status, "nope" in str(failed.reason)) == ("failed", True)


def test_the_form_asks_for_alternatives_and_has_the_columns_of_the_other_spec_recorded(tmp_path: Path) -> None:
    document = {"home": str(tmp_path), "catalogs": {"lake": {"properties": {"type": "jdbc"}}}}
    settings = SettingsDocument.model_validate(document)
    fields = {"table": str(TABLE), "spec": "days(d), bucket(4, id)", "metrics_columns": ["Site = none", ""]}
    request = what_if_request(fields | {"workers": 3, "sort_by": ["Site"], "metrics_default": ""})
    assert request == WhatIfRequest(spec=fields["spec"], metrics_columns={"Site": "none"}, sort_by=["Site"])
    rule = what_if_settings(settings, fields)[1].rule_for(TABLE)
    assert rule is not None
    assert rule.record_columns == ["d", "id"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"spec": "zorder(a)"}, "partition spec"),
        ({"metrics_default": "some"}, "metrics mode 'some'"),
        ({"metrics_columns": ["a"]}, "metrics_columns: 'a' is not of the form"),
        ({"target_manifest_bytes": 1}, "target_manifest_bytes"),
    ],
)
def test_a_wrong_field_of_the_form_is_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        what_if_request({"table": str(TABLE)} | fields)
