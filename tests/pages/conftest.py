from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest
from fastapi import Depends, Header, HTTPException, Request
from fastapi.testclient import TestClient

from planning_health.pages.app import Access, create_app
from planning_health.pages.store import Store

from .homes import two_weeks

STARTED = "manual__2026-11-30T07:00:00+00:00"


class Serve(Protocol):
    """Serves the pages of a home."""

    def __call__(self, home: Path, *, asks: bool = True) -> TestClient:
        """A client of the pages; ``asks`` is whether the settings require approval."""


def _known_person(person: str = Header("")) -> None:
    if not person:
        raise HTTPException(401, "Not authenticated")


def _owner(person: str = Header("")) -> None:
    if person != "owner":
        raise HTTPException(403, "Forbidden")


def _is_owner(person: str = Header("")) -> bool:
    return person == "owner"


@pytest.fixture
def started() -> list[dict[str, Any]]:
    """The forms of the runs that were started."""
    return []


@pytest.fixture
def serve(started: list[dict[str, Any]]) -> Serve:
    """The pages of a home, mounted as Airflow mounts them; a header says who asks."""
    from fastapi import FastAPI

    def start(request: Request, form: dict[str, Any]) -> str:
        started.append(form)
        return STARTED

    def client(home: Path, *, asks: bool = True) -> TestClient:
        store = Store(str(home))
        app = FastAPI()
        access = Access([Depends(_known_person)], [Depends(_owner)], _is_owner, lambda: asks)
        app.mount("/planning-health", create_app(lambda: store, access, start))
        return TestClient(
            app, base_url="http://pages/planning-health", headers={"person": "owner"}, follow_redirects=False
        )

    return client


@pytest.fixture
def pages(serve: Serve, tmp_path: Path) -> TestClient:
    """The pages of two weekly runs with a repair between them."""
    return serve(two_weeks(tmp_path))
