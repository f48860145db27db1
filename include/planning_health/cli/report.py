"""`planning-health report`: the weekly report without Airflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planning_health.cli.app import app
from planning_health.cli.options import AsJson, SettingsFile, WithSpark, new_run_folder, optional_spark
from planning_health.cli.output import console, errors, print_json, say, working
from planning_health.cli.tables import Tables, chosen_tables, refuse_bad_input
from planning_health.envelope import Envelope
from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.progress import progress
from planning_health.reports import Report, read_report, terminal_predictions, terminal_summary
from planning_health.reports.decisions import how_to_decide
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings, settings_to_name
from planning_health.stages.conclude import conclude
from planning_health.stages.diagnose import diagnose
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.report import report as report_stage
from planning_health.stages.run_record import start_run
from planning_health.stages.simulate_assignment import simulate_assignment
from planning_health.stages.simulate_plan_tasks import simulate_plan_tasks
from planning_health.stages.simulate_planning import simulate_planning
from planning_health.stages.table_stage import MEASUREMENT
from planning_health.wording import counted

TableStep = Callable[[SettingsDocument, RunFolder, TableName], Envelope]

MOST_STEPS: Final = 10
"""Next steps that the terminal lists; the report has them all."""

TABLE_STEPS: tuple[TableStep, ...] = (
    simulate_planning,
    diagnose,
    simulate_assignment,
    simulate_plan_tasks,
    propose,
)


@app.command("report", rich_help_panel="Measure")
def report(
    tables: Tables = None, spark: WithSpark = False, settings: SettingsFile = None, as_json: AsJson = False
) -> None:
    """Measures tables, simulates their queries, and writes the report; the tables and their catalog stay unchanged.

    Without tables it is the report on all of them, in reports/latest. A report on chosen tables stays in its run's
    folder, and no other report is compared with it.
    """
    document = load_settings(settings)
    names = chosen_tables(document, tables)
    folder = new_run_folder(document)
    start_run(document, folder)
    with working(f"measuring {len(names)} tables"):
        with optional_spark(document, spark) as session:
            measure(document, folder, names, spark=session)
        if tables:
            refuse_bad_input(folder.require_result(MEASUREMENT, name) for name in names)
        for number, name in enumerate(names, start=1):
            for table_step in TABLE_STEPS:
                table_step(document, folder, name)
            progress(f"looked at {name}", number, len(names))
    envelope = report_stage(document, folder, settings_file=settings_to_name(settings), chosen=bool(tables))
    if as_json:
        print_json(envelope.model_dump())
    else:
        if model := read_report(f"{folder.url}/report/report.json"):
            _show(model)
        say(f"report: {f'{folder.url}/report' if tables else f'{document.home}/reports/latest'}/index.html")
    conclusion = conclude(document, folder)
    if conclusion.status == "failed":
        raise WorkFailedError(str(conclusion.reason))


def _show(model: Report) -> None:
    """The report in short: what was left out, each table, and predictions against facts."""
    say(model.lede, wrap=True)
    console.print(terminal_summary(model))
    if predictions := terminal_predictions(model):
        console.print(predictions)
    for warning in model.warnings:
        say(f"warning: {warning}", wrap=True, to=errors)
    if model.summary.proposals:
        say(how_to_decide(model), wrap=True)
    for table, proposal in model.next_steps[:MOST_STEPS]:
        left = "" if proposal.runnable else " (recommended, and left to you to run)"
        say(f"\n{table.table}: {proposal.title}{left}", wrap=True)
        for line in [proposal.dry_run_command] if proposal.runnable else proposal.commands:
            say(line)
    if (more := len(model.next_steps) - MOST_STEPS) > 0:
        say(f"\nand {counted(more, 'more step')} in the report")
