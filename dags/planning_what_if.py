"""### What if?

Simulates how queries on one table plan, how workers share the work, and how a planning server would hand it out, for
predicates and workers of your choice; and what the queries would read with rewritten manifests, fewer statistics or
another partition spec. It reads the table's metadata and changes nothing.

**Steps.**

- `read_form` validates the form.
- `measure` records the table's planning metadata (Spark).
- `simulate_planning`, `simulate_assignment`, `simulate_plan_tasks` and `what_if` answer; each one's headline numbers
  are its XCom, and `path` in it is the full result below the home folder.
- `report` shows the answers, and `conclude` ends the run as it went.

**When it fails.**

- *`read_form` failed*: the message names the field and what was expected.
- *`measure` failed*: no such table, or it cannot be measured; the message says why.
- *`simulate_planning` failed*: a predicate cannot be understood; the message quotes it.
- *`what_if` failed*: the table has no such column or sort field, or a transform does not fit its column.
"""

from __future__ import annotations

from airflow.sdk import Param, dag

from planning_forms import layout_param, run_settings_and_tables, table_param
from planning_links import planning_task
from planning_operations import dag_options
from planning_run import Result, conclude_run, form_fields, planning_run, table_step, write_table_report
from spark_job_operator import SparkJobOperator

SETTINGS, TABLES = run_settings_and_tables()


@planning_task
def read_form() -> str:
    from planning_health.stages.forms import what_if_settings
    from planning_health.stages.run_record import start_run

    with planning_run() as (settings, folder):
        table, asked = what_if_settings(settings, form_fields())
        start_run(asked, folder)
        return str(table)


@planning_task
def simulate_planning() -> Result:
    return table_step("simulate_planning", form_fields()["table"])


@planning_task(trigger_rule="all_done")
def simulate_assignment() -> Result:
    return table_step("simulate_assignment", form_fields()["table"])


@planning_task(trigger_rule="all_done")
def simulate_plan_tasks() -> Result:
    return table_step("simulate_plan_tasks", form_fields()["table"])


@planning_task(trigger_rule="all_done")
def what_if() -> Result:
    from planning_health.stages.forms import what_if_request

    fields = form_fields()
    return table_step("what_if", fields["table"], request=what_if_request(fields))


@planning_task(trigger_rule="all_done")
def report() -> Result:
    return write_table_report()


@planning_task(trigger_rule="all_done", retries=0)
def conclude() -> Result:
    return conclude_run("planning", "assignment", "plan_tasks", "what_if")


@dag(
    description="Simulates how queries on one table plan, as it is and with another layout; changes nothing.",
    schedule=None,
    doc_md=__doc__,
    **dag_options(SETTINGS),
    params={
        "table": table_param(TABLES),
        "predicates": Param(
            [],
            type=["array", "null"],
            items={"type": "string"},
            title="Predicates",
            description_md="One WHERE clause a line, as in Spark SQL: "
            "`ordered_on >= DATE'2026-05-01' AND country = 'DE'`. Empty: the table's configured queries, "
            "else equality on each partition field.",
        ),
        "spec": Param(
            None,
            type=["string", "null"],
            title="Partition spec",
            description_md="As in Spark SQL: `days(ts), bucket(16, id)`, or `unpartitioned`. Empty: not asked.",
            section="Another layout",
        ),
        "target_manifest_bytes": layout_param(
            "target_manifest_bytes",
            "Another layout",
            "Of rewritten manifests. Empty: the table's own.",
        ),
        "sort_by": layout_param(
            "sort_by",
            "Another layout",
            "Partition **field** names, one a line, such as `ordered_on_day`. Empty: all of the spec.",
        ),
        "metrics_default": layout_param(
            "metrics_default",
            "Another layout",
            "Metrics mode of the columns that are not named below. Empty: as they are.",
        ),
        "metrics_columns": layout_param(
            "metrics_columns",
            "Another layout",
            "One `column = mode` a line: `none`, `counts`, `truncate(16)` or `full`.",
        ),
        "workers": Param(
            SETTINGS.assignment.workers,
            type="integer",
            minimum=1,
            title="Workers",
            description_md="Executors that share the files of a scan.",
            section="Work assignment",
        ),
        "partitions_per_task": Param(
            SETTINGS.assignment.partitions_per_task,
            type="integer",
            minimum=1,
            title="Partitions per task",
            description_md="Parts of a task that are read side by side; *dealt out in turn* fills each of them.",
            section="Work assignment",
        ),
        "tasks": Param(
            SETTINGS.assignment.tasks,
            type=["integer", "null"],
            minimum=1,
            title="Tasks",
            description_md="Empty: one per worker.",
            section="Work assignment",
        ),
        "strategy": Param(
            SETTINGS.assignment.strategy,
            type="string",
            enum=["default", "greedy"],
            values_display={"default": "Dealt out in turn (default)", "greedy": "Largest files first (greedy)"},
            title="Strategy",
            description_md="How files become the tasks' work. The report compares both; this one is the headline.",
            section="Work assignment",
        ),
        "batch_size": Param(
            SETTINGS.plan_tasks.batch_size,
            type="integer",
            minimum=0,
            title="Tasks per plan task (batch size)",
            description_md="Files that a planning server hands out with one response. 0: all of them.",
            section="Planning server",
        ),
        "replicas": Param(
            SETTINGS.plan_tasks.replicas,
            type="integer",
            minimum=1,
            title="Replicas",
            description_md="Processes of the planning server; a client's next request can reach another one.",
            section="Planning server",
        ),
    },
)
def planning_what_if() -> None:
    measure = SparkJobOperator(
        task_id="measure",
        job="measure",
        table="{{ params.table }}",
        execution_timeout=SETTINGS.operations.spark_timeout,
    )
    simulations = [simulate_assignment(), simulate_plan_tasks(), what_if()]
    read_form() >> measure >> simulate_planning() >> simulations >> report() >> conclude()


planning_what_if()
