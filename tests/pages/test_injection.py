"""Whatever text a table, a finding, a query or a reason holds, the pages in Airflow have the same elements."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings

from planning_health.identifiers import TableName
from planning_health.pages.app import Access, create_app
from planning_health.pages.links import maintain_path, table_path
from planning_health.pages.store import Store
from planning_health.stages.report import report

from ..reports import sample_run as sample
from ..reports.test_injection import TEXT, Structure


def pages(text: str) -> list[list[tuple[str, ...]]]:
    """The elements of each page on a table that is called so, and has findings, queries and reasons that say so."""
    with TemporaryDirectory() as folder:
        table = TableName("lake", ("sales",), text)
        run = sample.Sample(Path(folder), sample.WEEKLY, "scheduled__1", "2026-11-30T06:02:00+00:00")
        rows = [sample.manifest(n, sample.FIRST_DAY, sample.FIRST_DAY + 9) for n in range(3)]
        finding = {"id": "f", "title": text, "level": "critical", "evidence": text, "recommendation": text}
        run.put("measure", data={"tables": [str(table)], "failed": {}})
        run.measured(table, 1, 3, 9)
        run.put("health", table, snapshot_id=1, data=sample.health_of(rows, state="critical", findings=[finding]))
        run.put("planning", table, data=sample.planning((text, text, 1, 3)))
        run.put("proposal", table, data=sample.proposal(table))
        run.put("action", table, data=sample.action("failed"), status="failed", reason=text)
        report(sample.SETTINGS, run.folder)
        store = Store(folder)
        client = TestClient(create_app(lambda: store, Access([], [], lambda: True, lambda: True), lambda *_: ""))
        paths = ["/", table_path(str(table)), maintain_path(str(table), "rewrite_manifests_spec_0")]
        answers = [client.get(path) for path in paths]
        assert [answer.status_code for answer in answers] == [200] * len(paths)
        return [Structure(answer.text).elements for answer in answers]


@pytest.fixture(scope="module")
def harmless() -> list[list[tuple[str, ...]]]:
    return pages("harmless")


@settings(max_examples=25, deadline=None)
@given(TEXT)
def test_no_text_changes_the_structure_of_a_page(harmless: list[list[tuple[str, ...]]], text: str) -> None:
    assert pages(text) == harmless
