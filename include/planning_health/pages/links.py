"""Addresses: of the pages, of runs in the Airflow UI, and of a page inside that UI."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

MOUNT: Final = "/planning-health"
"""Where the pages are mounted in Airflow's API server, and the route of the view that shows them in its UI."""

MAINTENANCE_DAG: Final = "table_maintenance"
WEEKLY_DAG: Final = "planning_health_weekly"
DAGS: Final = frozenset({MAINTENANCE_DAG, WEEKLY_DAG, "planning_what_if"})
"""Runs of these are to be found in the Airflow UI."""


def table_path(table: str) -> str:
    """A table's page below the mount."""
    return f"/table?{urlencode({'name': table})}"


def maintain_path(table: str, proposal: str = "") -> str:
    """The form that starts maintenance, with a proposal's values or without, below the mount."""
    return f"/table/maintain?{urlencode({'name': table} | ({'proposal': proposal} if proposal else {}))}"


def run_path(dag_id: str, run_id: str, map_index: int = -1) -> str:
    """The page of a run below the mount; with the index of a mapped task, the page of its table."""
    mapped = {"map_index": map_index} if map_index >= 0 else {}
    return f"/run?{urlencode({'dag_id': dag_id, 'run_id': run_id} | mapped)}"


def run_report_path(dag_id: str, run_id: str) -> str:
    """The report of a run below the mount."""
    return f"/run/report?{urlencode({'dag_id': dag_id, 'run_id': run_id})}"


def report_path(folder: str) -> str:
    """The page of the weekly report in ``reports/<name>``."""
    return f"/reports/{_quoted(posixpath.basename(folder))}"


def in_airflow(base_url: str, path: str) -> str:
    """The address of a page inside the Airflow UI, whose frame follows the part after the view's route.

    Args:
        base_url: address of the UI (``[api] base_url``), with the path that it is served under.
        path: the page, below the mount.
    """
    base = base_url.rstrip("/")
    prefix = "/" + base.partition("://")[2].partition("/")[2] if "://" in base else base
    return f"{base}/plugin{MOUNT}{prefix.rstrip('/')}{MOUNT}{path}"


@dataclass(frozen=True)
class Links:
    """Addresses as a page's own links need them.

    Args:
        root: the path that the pages are served under, such as ``/planning-health``.
    """

    root: str

    @property
    def airflow(self) -> str:
        """The path that Airflow's UI is served under."""
        return self.root.removesuffix(MOUNT)

    def index(self, **query: object) -> str:
        """The list of tables, filtered."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{self.root}/{'?' + urlencode(given) if given else ''}"

    def table(self, table: str) -> str:
        """A table's page."""
        return self.root + table_path(table)

    def maintain(self, table: str, proposal: str = "") -> str:
        """The form that starts maintenance, with a proposal's values or without."""
        return self.root + maintain_path(table, proposal)

    def reports(self) -> str:
        """The list of reports."""
        return f"{self.root}/reports"

    def report(self, folder: str) -> str:
        """A report in the page; of a run that is not the week's, the run's page leads to it."""
        return self.root + report_path(folder)

    def run(self, dag_id: str, run_id: str) -> str:
        """The page of a run."""
        return self.root + run_path(dag_id, run_id)

    def run_report(self, dag_id: str, run_id: str) -> str:
        """The report of a run."""
        return self.root + run_report_path(dag_id, run_id)

    def airflow_run(self, dag_id: str, run_id: str) -> str:
        """The run in the Airflow UI; empty for one that was not made by our Dags."""
        return f"{self.airflow}/dags/{_quoted(dag_id)}/runs/{_quoted(run_id)}" if dag_id in DAGS else ""

    def airflow_dag(self, dag_id: str) -> str:
        """A Dag in the Airflow UI."""
        return f"{self.airflow}/dags/{_quoted(dag_id)}"


def _quoted(text: str) -> str:
    return quote(text, safe="")
