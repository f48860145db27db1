"""Step: writes the report of a run, and publishes a weekly run's report."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from planning_health.envelope import Envelope
from planning_health.pages.links import in_airflow, run_report_path
from planning_health.reports import Report, build_report, read_report, render_html, render_mail, render_markdown
from planning_health.reports.build import REPORT, SINGLE_RUNS
from planning_health.reports.decisions import Decisions
from planning_health.reports.trend import remember
from planning_health.run_folder import CLI_DAG_ID, RunFolder, paths_below, run_key, write_bytes
from planning_health.settings import SettingsDocument
from planning_health.wording import parse_time

KIND: Final = REPORT
LATEST: Final = "reports/latest"


def report(
    settings: SettingsDocument,
    run_folder: RunFolder,
    *,
    airflow_url: str | None = None,
    settings_file: str | None = None,
    chosen: bool = False,
) -> Envelope:
    """Writes ``report/{index.html,mail.html,report.md,report.json}`` into the run folder.

    The report of a weekly (or command line) run on all tables is also copied to ``reports/<ISO week>-<run key>/`` and,
    when no later measurement was reported yet, to ``reports/latest/``; a run that is repeated overwrites its own
    copies. The report on chosen tables, of a maintenance or of a what-if run stays in its folder: no report is
    compared with it. The run's trend file is written for the pages.

    Args:
        settings: the settings.
        run_folder: the run's folder.
        airflow_url: address of the Airflow UI, for links to the form where proposals are decided.
        settings_file: what the commands of the proposals name with ``--settings``; ``None`` where they need not.
        chosen: whether the run was asked for some tables only.

    Returns:
        The envelope with the headline numbers. The result's data names the folders, relative to ``home``; the model
        itself is ``report/report.json``.
    """
    asking = None if run_folder.dag_id in (CLI_DAG_ID, *SINGLE_RUNS) else settings.maintenance
    model = build_report(run_folder, Decisions(airflow_url, settings_file, asking, settings), chosen=chosen)
    files = {
        "index.html": render_html(model).encode(),
        "mail.html": render_mail(model, report_url(model)).encode(),
        "report.md": render_markdown(model).encode(),
        "report.json": model.model_dump_json(indent=1).encode(),
    }
    published = published_folder(run_folder, model) if model.whole_week else None
    own = f"{run_folder.relative_path}/report"
    folders = [own]
    if published:
        folders += [published, LATEST] if _is_newest(run_folder.home, model) else [published]
    for folder in folders:
        for name, content in files.items():
            write_bytes(f"{run_folder.home.rstrip('/')}/{folder}/{name}", content)
    remember(run_folder, model, published or own, timedelta(days=settings.retention.history_days))
    summary = model.summary
    return run_folder.write_result(
        KIND,
        headline={
            "tables": summary.tables,
            "critical": summary.critical,
            "warning": summary.warning,
            "ok": summary.ok,
            "failed": summary.failed,
            "proposals": summary.proposals,
            "actions": summary.actions,
        },
        data={
            "folder": own,
            "published": published,
            "files": list(files),
            "lede": model.lede,
            "measured_at": model.measured_from or model.created_at,
        },
    )


def report_url(model: Report) -> str | None:
    """Where the report is read in the Airflow UI; ``None`` without its address, and for the command line's."""
    if model.airflow_url is None or model.dag_id == CLI_DAG_ID:
        return None
    return in_airflow(model.airflow_url, run_report_path(model.dag_id, model.run_id))


def _is_newest(home: str, model: Report) -> bool:
    """Whether no later measurement was reported already: an old run that is repeated must not hide it."""
    latest = read_report(f"{home.rstrip('/')}/{LATEST}/report.json")
    if latest is None or latest.run_id == model.run_id:
        return True
    return (model.measured_from or model.created_at) >= (latest.measured_from or latest.created_at)


def published_folder(run_folder: RunFolder, model: Report) -> str:
    """``reports/<ISO week>-<run key>``; the folder of an earlier report of the same run is kept."""
    key = run_key(run_folder.run_id)
    if earlier := paths_below(run_folder.home, "reports", f"*-{key}"):
        return earlier[0]
    moment = parse_time(model.measured_from) or parse_time(model.created_at)
    week = f"{moment:%G-W%V}" if moment else "undated"
    return f"reports/{week}-{key}"
