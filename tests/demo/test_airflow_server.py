"""`make airflow` builds the demonstration lake for the demonstration's settings only."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from planning_health.demo import airflow_server
from planning_health.errors import WorkFailedError
from planning_health.settings.load import DEMO_SETTINGS, HOME_VARIABLE, SETTINGS_VARIABLE


@pytest.mark.parametrize("own_settings", [False, True])
def test_the_demonstration_is_not_written_into_a_catalog_of_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_settings: bool
) -> None:
    built: list[str] = []

    def end(_: object) -> None:
        raise WorkFailedError("far enough")

    monkeypatch.setattr(airflow_server, "require_java", lambda: None)
    monkeypatch.setattr(airflow_server, "build_lake_once", lambda settings, _: built.append(settings.home))
    monkeypatch.setattr(airflow_server, "prepare_airflow_home", end)
    file = tmp_path / "settings.yaml"
    file.write_text(DEMO_SETTINGS.read_text())
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv(SETTINGS_VARIABLE, str(file if own_settings else DEMO_SETTINGS))
    with pytest.raises(WorkFailedError, match="far enough"):
        airflow_server.serve(Console())
    assert len(built) == (0 if own_settings else 1)
