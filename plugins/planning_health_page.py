"""The "Planning health" page in the Airflow UI: the library's pages, behind Airflow's login and permissions.

Who may see plugins and read ``planning_health_weekly`` may look; who may start runs of ``table_maintenance`` may start
one from a proposal. The application is made at the first request: each of Airflow's processes loads plugins, and only
the API server serves pages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from airflow.plugins_manager import AirflowPlugin

from planning_health.pages.links import MOUNT
from planning_links import url_prefix

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

    from planning_health.pages.store import Store


@cache
def pages() -> FastAPI:
    """The pages with Airflow's answers to who may do what."""
    from planning_health.pages.app import create_app
    from planning_page_access import access, start_maintenance

    return create_app(_store, access(), start_maintenance)


@cache
def _store() -> Store:
    """The files below the home that the settings name.

    Raises:
        InputError: when the settings cannot be used; the next request tries again.
    """
    from planning_health.pages.store import Store
    from planning_health.settings import load_settings
    from planning_run import settings_file

    return Store(load_settings(settings_file()).home)


class Pages:
    """The application, made when it is first asked for something."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI)."""
        await pages()(scope, receive, send)


class PlanningHealthPage(AirflowPlugin):
    """Mounts the pages and shows them in the navigation and beside each Dag run."""

    name = "planning_health_page"
    fastapi_apps = [{"app": Pages(), "url_prefix": MOUNT, "name": "Planning health"}]  # noqa: RUF012 # as Airflow declares it
    external_views = [  # noqa: RUF012
        {
            "name": "Planning",  # as long as the navigation shows in full
            "href": f"{url_prefix()}{MOUNT}/",
            "destination": "nav",
            "url_route": MOUNT.strip("/"),
            "nav_top_level": True,
        }
    ]
