"""### Planning health, every week.

Measures every Iceberg table that the settings include, says which manifests slow query planning down, proposes
repairs with their predicted effect, and writes the weekly report (`reports/latest/` in the home folder). It reads the
tables and changes none; the only table it writes is the history.

**Steps.**

- `discover` lists the tables: of a scheduled run those that are due, those that an event of the asset
  `planning_health_request` names, else all.
- `measure` records their planning metadata in one Spark application, and `validate` checks the recording with Great
  Expectations.
- For each table, named by it: `diagnose`, `simulate_planning`, `simulate_assignment`, `simulate_plan_tasks`, `propose`.
- `append_history` adds the numbers to the history, and `report` writes the report.
- `notify` tells people of it, `prune` removes runs beyond the retention, and `conclude` ends the run as it went.

**When it fails.**

- `conclude` is the task to read: it names each table or step that failed, with the reason. One failing table never
  stops the others, and the report shows it with its reason.
- *`discover` failed*: a catalog cannot be reached, or the settings are wrong. The message names the catalog or the key.
- *`measure` failed*: Spark could not start (connection, Java, packages), or no table could be measured. Spark's log is
  in the task's log. Clear the task: measuring again is safe.
- *A table's task failed*: its message is the reason. Fix the cause and clear that task and those below it.
- *A table that must not fail the run* (known to be broken): `tolerate_failure: true` in its rule of the settings.
- *`notify` failed*: a notifier of the settings could not send; its message says which. The report is written anyway.
- *`report` failed*: clear it; it is rebuilt from the stored results, nothing is measured again.
"""

from __future__ import annotations

from airflow.sdk import dag, task_group

from planning_assets import MEASUREMENT, REPORT
from planning_health.settings import load_settings
from planning_links import planning_task
from planning_notifications import notify_of_report
from planning_operations import dag_options, deadline, schedule
from planning_run import (
    BY_TABLE,
    Result,
    conclude_run,
    discover_tables,
    measured_tables,
    settings_file,
    step,
    table_step,
    write_report,
)
from spark_job_operator import SparkJobOperator

SETTINGS = load_settings(settings_file())


@planning_task
def discover() -> Result:
    return discover_tables()


@planning_task
def validate() -> Result:
    return step("validate")


@planning_task(trigger_rule="all_done")
def tables() -> list[str]:
    return measured_tables()


@planning_task(map_index_template=BY_TABLE, trigger_rule="all_done")
def diagnose(table: str) -> Result:
    return table_step("diagnose", table)


@planning_task(map_index_template=BY_TABLE)
def simulate_planning(table: str) -> Result:
    return table_step("simulate_planning", table)


@planning_task(map_index_template=BY_TABLE, trigger_rule="all_done")
def simulate_assignment(table: str) -> Result:
    return table_step("simulate_assignment", table)


@planning_task(map_index_template=BY_TABLE, trigger_rule="all_done")
def simulate_plan_tasks(table: str) -> Result:
    return table_step("simulate_plan_tasks", table)


@planning_task(map_index_template=BY_TABLE, trigger_rule="all_done")
def propose(table: str) -> Result:
    return table_step("propose", table)


@planning_task(trigger_rule="all_done")
def append_history() -> Result:
    return step("append_history")


@planning_task(trigger_rule="all_done", outlets=[REPORT])
def report() -> Result:
    return write_report()


@planning_task(trigger_rule="all_done")
def notify() -> None:
    notify_of_report()


@planning_task(trigger_rule="all_done")
def prune() -> Result:
    return step("prune")


@planning_task(trigger_rule="all_done", retries=0)
def conclude() -> Result:
    return conclude_run("health", "planning", "assignment", "plan_tasks", "proposal")


@task_group
def table_health(table: str) -> None:
    planning = simulate_planning(table=table)
    planning >> [simulate_assignment(table=table), simulate_plan_tasks(table=table)]
    planning >> diagnose(table=table) >> propose(table=table)


@dag(
    description="Measures all Iceberg tables, finds what slows planning down, and writes the report.",
    schedule=schedule(SETTINGS),
    dagrun_timeout=SETTINGS.operations.run_timeout,
    deadline=deadline(SETTINGS),
    doc_md=__doc__,
    **dag_options(SETTINGS),
)
def planning_health_weekly() -> None:
    measure = SparkJobOperator(
        task_id="measure", job="measure", outlets=[MEASUREMENT], execution_timeout=SETTINGS.operations.spark_timeout
    )
    measured = tables()
    discover() >> measure >> validate() >> measured
    table_health.expand(table=measured) >> append_history() >> report() >> [notify(), prune()] >> conclude()


planning_health_weekly()
