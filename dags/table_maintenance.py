"""### Maintenance of one table.

Sets table properties, rewrites manifests and trims their column statistics so that queries plan faster, with the
effect predicted before and verified after. A **dry run** (the default) shows the exact changes and stops.

*Planning* in the navigation has this form for each table: filled in from its proposals, with its columns to choose.

**Steps.**

- `read_form` validates the form.
- `propose` measures the table and predicts the effect (Spark); `diagnose` says what slows planning down now, and
  `describe` puts the proposal into words.
- `decide` goes on to `approve` (a person, under *Required actions*), straight to `act` (approval switched off, or the
  change is within the settings' `maintenance.auto_approve`), or to the report (dry run, or nothing to improve).
- `act` guards, sets properties, rewrites or trims, verifies and measures again (Spark; one table at a time, by its
  pool).
- `refuse` notes that the proposal was not approved.
- `report` shows before and after, and `conclude` ends the run as it went.

**When it fails.**

- *`read_form` failed*: the message names the field and what was expected. Nothing was done.
- *`propose` failed*: the table cannot be measured, or the request does not fit it (unknown column, spec, field).
- *`approve` rejected or timed out*: the run ends well and the table is unchanged; the report says so.
- *`act` failed*: read `conclude`. A *conflict* means that another writer kept committing: run it again at a quieter
  time. *Verification failed* means that the new snapshot does not hold what the old one held: the message has the
  command to roll back, good while that snapshot is still the current one. **Do not remove orphan files** until the
  cause is known. Clearing `act` is safe: a rewrite that this run has already committed is not repeated.
- *`act` is queued for ever*: the pool is missing. `airflow pools set planning_health_maintenance 1 "one table at a
  time"`.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Label, Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from maintenance_approval import MaintenanceApproval, answer_of, must_ask
from planning_assets import MAINTAINED_TABLE
from planning_forms import layout_param, run_settings_and_tables, table_param
from planning_health.identifiers import TableName
from planning_links import planning_task
from planning_operations import dag_options
from planning_run import Result, conclude_run, form_fields, planning_run, table_step, write_table_report
from spark_job_operator import SparkJobOperator

SETTINGS, TABLES = run_settings_and_tables()
MAINTENANCE = SETTINGS.maintenance


@planning_task
def read_form() -> dict[str, Any]:
    from planning_health.stages.forms import maintenance_request
    from planning_health.stages.run_record import start_run

    with planning_run() as (settings, folder):
        _, request = maintenance_request(form_fields())
        start_run(settings, folder)
        return request.model_dump()


@planning_task
def diagnose() -> Result:
    return table_step("diagnose", form_fields()["table"])


@planning_task
def describe() -> str:
    from planning_health.reports.proposal_text import proposal_text

    with planning_run() as (_, folder):
        return proposal_text(folder.require_result("proposal", TableName.parse(form_fields()["table"])))


@task.branch
def decide(proposal: dict[str, Any]) -> str:
    form = form_fields()
    if form["dry_run"] or not proposal["headline"]["proposals"]:
        return "report"
    return "approve" if form["approval"] and MAINTENANCE.approval == "required" and must_ask(proposal) else "act"


@planning_task(trigger_rule="all_done")
def refuse() -> Result:
    answer = answer_of("approve")
    if answer is None or answer.approved:
        raise AirflowSkipException("nobody refused the proposal")
    return table_step("refuse", form_fields()["table"], by=answer.by)


@planning_task(trigger_rule="all_done")
def report() -> Result:
    return write_table_report()


@planning_task(trigger_rule="all_done", retries=0)
def conclude() -> Result:
    return conclude_run("health", "proposal")


@dag(
    description="Proposes and, once approved, makes and verifies a repair of one table.",
    schedule=None,
    doc_md=__doc__,
    **dag_options(SETTINGS),
    params={
        "table": table_param(TABLES),
        "actions": Param(
            ["rewrite_manifests"],
            type="array",
            items={"type": "string", "enum": ["rewrite_manifests", "set_properties", "trim_statistics"]},
            examples=["rewrite_manifests", "set_properties", "trim_statistics"],
            values_display={
                "rewrite_manifests": "Rewrite manifests (cluster them by partition)",
                "set_properties": "Set table properties (statistics of new files, manifest size)",
                "trim_statistics": "Trim statistics that the properties do not ask for from existing manifests",
            },
            title="Actions",
            description_md="Properties are always set before manifests are rewritten. A trim clusters manifests too, "
            "and touches no data file; what it removes comes back only by a rollback.",
        ),
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            description_md="Show the exact changes and their predicted effect, and **change nothing**.",
        ),
        "approval": Param(
            True,
            type="boolean",
            title="Ask a person before acting",
            description_md="Stops after the proposal until someone approves it"
            + (", unless it is within `maintenance.auto_approve` of the settings." if MAINTENANCE.auto_approve else ".")
            if MAINTENANCE.approval == "required"
            else "**Without effect**: the settings have switched approval off (`maintenance.approval`).",
        ),
        "spec_id": Param(
            None,
            type=["integer", "null"],
            minimum=0,
            title="Partition spec",
            description_md="Id of the one spec whose manifests are rewritten; empty: each spec that gains by it.",
            section="Rewrite manifests",
        ),
        "sort_by": layout_param(
            "sort_by",
            "Rewrite manifests",
            "Partition **field** names, one a line, such as `ordered_on_day`; empty: all of the spec.",
        ),
        "target_manifest_bytes": layout_param(
            "target_manifest_bytes",
            "Set table properties",
            "Sets `commit.manifest.target-size-bytes`; needs the action *set table properties*.",
        ),
        "metrics_default": layout_param(
            "metrics_default",
            "Set table properties",
            "`write.metadata.metrics.default`: `none`, `counts`, `truncate(N)` or `full`. "
            "Concerns **new files only**, unless statistics are trimmed too.",
        ),
        "metrics_columns": layout_param(
            "metrics_columns",
            "Set table properties",
            "One `column = mode` a line, such as `customer_id = truncate(16)`; "
            "an empty mode removes the column's property.",
        ),
    },
)
def table_maintenance() -> None:
    form = read_form()
    propose = SparkJobOperator(
        task_id="propose",
        job="propose",
        table="{{ params.table }}",
        request=form,
        execution_timeout=SETTINGS.operations.spark_timeout,
    )
    decision = decide(propose.output)
    approve = MaintenanceApproval(
        task_id="approve",
        subject="Maintenance of {{ params.table }}",
        body="{{ ti.xcom_pull('describe') }}",
        defaults=MaintenanceApproval.REJECT,  # no answer in time leaves the table unchanged
        response_timeout=MAINTENANCE.approval_timeout,
        retries=0,
    )
    act = SparkJobOperator(
        task_id="act",
        job="act",
        table="{{ params.table }}",
        request=form,
        pool=MAINTENANCE.pool,
        trigger_rule="none_failed_min_one_success",
        outlets=[MAINTAINED_TABLE],
        execution_timeout=SETTINGS.operations.spark_timeout,
        retries=2,
        retry_exponential_backoff=True,
    )
    reported = report()

    propose >> diagnose() >> reported
    propose >> describe() >> decision
    decision >> Label("dry run, or nothing to improve") >> reported
    decision >> Label("approval required") >> approve >> act
    decision >> Label("approval switched off, or within the limits") >> act
    act >> refuse() >> reported >> conclude()


table_maintenance()
