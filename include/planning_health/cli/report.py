"""`planning-health report`: the weekly report without Airflow."""

from __future__ import annotations

from collections.abc import Callable

from planning_health.cli.app import app
from planning_health.cli.options import AsJson, SettingsFile, WithSpark, new_run_folder, optional_spark
from planning_health.cli.output import console, print_json, say, working
from planning_health.cli.tables import Tables, chosen_tables
from planning_health.envelope import Envelope
from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.progress import progress
from planning_health.reports import read_report, terminal_predictions, terminal_summary
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.conclude import conclude
from planning_health.stages.diagnose import diagnose
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.report import report as report_stage
from planning_health.stages.run_record import start_run
from planning_health.stages.simulate_assignment import simulate_assignment
from planning_health.stages.simulate_plan_tasks import simulate_plan_tasks
from planning_health.stages.simulate_planning import simulate_planning

TableStep = Callable[[SettingsDocument, RunFolder, TableName], Envelope]

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
    """Measures tables, simulates their queries, and writes the report; the tables and their catalog stay unchanged."""
    document = load_settings(settings)
    names = chosen_tables(document, tables)
    folder = new_run_folder(document)
    start_run(document, folder)
    with working(f"measuring {len(names)} tables"):
        with optional_spark(document, spark) as session:
            measure(document, folder, names, spark=session)
        for number, name in enumerate(names, start=1):
            for table_step in TABLE_STEPS:
                table_step(document, folder, name)
            progress(f"looked at {name}", number, len(names))
    envelope = report_stage(document, folder)
    if as_json:
        print_json(envelope.model_dump())
    else:
        if model := read_report(f"{folder.url}/report/report.json"):
            console.print(terminal_summary(model))
            if predictions := terminal_predictions(model):
                console.print(predictions)
        say(f"report: {document.home}/reports/latest/index.html")
    conclusion = conclude(document, folder)
    if conclusion.status == "failed":
        raise WorkFailedError(str(conclusion.reason))
