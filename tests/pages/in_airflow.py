"""Asks Airflow's real API server for the pages, as people with different roles; prints what it answered as JSON.

Run in a process of its own: Airflow reads its configuration once. The variables name the home and the plugins.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx
from airflow import settings
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagrun import DagRun
from airflow.utils.db import initdb
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

TABLE = {"name": "lake.sales.customers", "proposal": "rewrite_manifests_spec_0"}
FORM = TABLE | {"actions": "rewrite_manifests", "spec_id": "0"}


def answers(client: TestClient, headers: dict[str, str]) -> dict[str, Any]:
    """What the pages answer: to a look at the list and the form, and to its start."""

    def status(answer: httpx.Response) -> int:
        return answer.status_code

    form = client.get("/planning-health/table/maintain", params=TABLE, headers=headers)
    return {
        "list": status(client.get("/planning-health/", headers=headers)),
        "style": status(client.get("/planning-health/page.css", headers=headers)),
        "form": status(form),
        "offered": "Start the run" in form.text,
        "start": status(client.post("/planning-health/table/maintain", data=FORM, headers=headers)),
        "foreign start": status(
            client.post("/planning-health/table/maintain", data=FORM, headers=headers | {"sec-fetch-site": "same-site"})
        ),
    }


def main(dags: str) -> None:
    """Prints the answers by role, the runs that were started, and what the UI is told of the page."""
    app = create_app("core")
    initdb()
    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(dags, bundle_name="dags-folder"), "dags-folder", None)
    client = TestClient(app, follow_redirects=False)
    found = {"nobody": answers(client, {}), "forged": answers(client, {"Authorization": "Bearer e30.e30.x"})}
    for role in ("VIEWER", "USER", "ADMIN"):
        token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role.lower(), role=role))
        found[role.lower()] = answers(client, {"Authorization": f"Bearer {token}"})
    headers = {"Authorization": f"Bearer {token}"}
    plugins = client.get("/api/v2/plugins", headers=headers).json()["plugins"]
    with Session(settings.engine) as session:
        runs = [(run.triggering_user_name, run.conf) for run in session.scalars(select(DagRun).order_by(DagRun.id))]
    views = [view for plugin in plugins for view in plugin["external_views"]]
    sys.stdout.write(f"\n{json.dumps({'answers': found, 'runs': runs, 'views': views})}\n")


if __name__ == "__main__":
    main(sys.argv[1])
