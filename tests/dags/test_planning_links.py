"""The links from Airflow's tasks to the "Planning health" page."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.types import TaskInstanceKey

from planning_links import TableLink

pytestmark = pytest.mark.airflow

RUN = "manual__2026-11-30T07:00:00+00:00"
ADDRESS = "http://airflow.example/af/plugin/planning-health/af/planning-health/run?dag_id=weekly&run_id="
ENCODED = "manual__2026-11-30T07%3A00%3A00%2B00%3A00"


def test_every_task_that_works_on_tables_has_the_link() -> None:
    bag = DagBag(str(Path(__file__).parents[2] / "dags"))
    without = {
        f"{dag.dag_id}.{task.task_id}"
        for dag in bag.dags.values()
        for task in dag.tasks
        if "Planning health" not in {link.name for link in task.operator_extra_links}
    }
    assert without == {"table_maintenance.decide"}  # only chooses what comes next


@pytest.mark.parametrize(("map_index", "end"), [(-1, ""), (3, "&map_index=3")])
def test_the_link_leads_to_the_page_of_the_run_or_of_the_mapped_tasks_table(
    monkeypatch: pytest.MonkeyPatch, map_index: int, end: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example/af/")
    key = TaskInstanceKey(dag_id="weekly", task_id="diagnose", run_id=RUN, map_index=map_index)
    assert TableLink().get_link(None, ti_key=key) == ADDRESS + ENCODED + end  # type: ignore[arg-type]
