"""What the pages read: little, only files of runs, and never more for being asked again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from planning_health.pages.charts import OVERLAP, samples, sparkline
from planning_health.pages.maintenance_form import filled_in
from planning_health.pages.store import Store
from planning_health.reports import build_report
from planning_health.reports.trend import FOLDER, remember
from planning_health.run_folder import run_key
from planning_health.stages.forms import maintenance_request
from planning_health.stages.report import report

from ..reports import sample_run as sample
from .conftest import Serve
from .homes import two_weeks, year

ORDERS = str(sample.ORDERS)
YEAR = timedelta(days=365)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were opened, in order."""
    files: list[str] = []
    original = LocalFileSystem._open

    def counting(self: LocalFileSystem, path: str, *args: Any, **kwargs: Any) -> Any:
        files.append(path)
        return original(self, path, *args, **kwargs)

    monkeypatch.setattr(LocalFileSystem, "_open", counting)
    return files


def test_the_list_opens_one_small_file_a_week_however_many_tables_there_are_and_each_once(
    serve: Serve, tmp_path: Path, opened: list[str]
) -> None:
    home = year(tmp_path, tables=500)
    pages = serve(home)
    opened.clear()
    assert pages.get("/").status_code == 200
    assert len(opened) == 52
    opened.clear()
    assert pages.get("/", params={"q": "t0042"}).status_code == 200
    assert pages.get("/reports").status_code == 200
    assert opened == []


def test_a_tables_page_opens_the_results_of_one_run_and_one_picture_from_before(
    serve: Serve, tmp_path: Path, opened: list[str]
) -> None:
    pages = serve(two_weeks(tmp_path))
    pages.get("/")
    opened.clear()
    assert pages.get("/table", params={"name": ORDERS}).status_code == 200
    assert len(opened) <= 12
    assert all("/runs/" in path for path in opened)


def test_a_new_run_is_seen_and_only_its_file_is_read(tmp_path: Path, opened: list[str]) -> None:
    home = year(tmp_path, tables=5, weeks=3)
    store = Store(str(home))
    assert len(store.trends().runs) == 3
    report(sample.SETTINGS, sample.this_week(home).folder)
    opened.clear()
    assert len(store.trends().runs) == 4
    assert len(opened) == 1


def test_a_repeated_run_replaces_its_own_trend_file(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    for _ in range(2):
        report(sample.SETTINGS, run.folder)
    files = list((tmp_path / FOLDER / "week").iterdir())
    assert [file.name for file in files] == [f"20261130T060200Z-{run_key(run.run_id)}.json"]
    assert len(Store(str(tmp_path)).trends().tables) == 7


def test_trend_files_are_kept_as_long_as_the_settings_say(tmp_path: Path) -> None:
    year(tmp_path, tables=1, weeks=52)
    run = sample.this_week(tmp_path)
    remember(run.folder, build_report(run.folder), "reports/x", timedelta(days=29))
    oldest = min(path.name for path in (tmp_path / FOLDER / "week").iterdir())
    assert oldest >= f"{datetime.now(UTC) - timedelta(days=29):%Y%m%d}"


def test_a_damaged_trend_file_costs_its_run_only(tmp_path: Path) -> None:
    home = year(tmp_path, tables=2, weeks=3)
    first, *_ = sorted((home / FOLDER / "week").iterdir())
    first.write_text('{"schema_version": 1, "tables": ')
    assert len(Store(str(home)).trends().runs) == 2


def test_what_is_older_than_a_year_is_not_shown(tmp_path: Path) -> None:
    home = year(tmp_path, tables=1, weeks=80)
    assert len(Store(str(home)).trends().runs) in (53, 54)


def test_a_table_that_the_newest_week_does_not_have_is_not_listed(tmp_path: Path) -> None:
    year(tmp_path, tables=3, weeks=2)
    newest = max((tmp_path / FOLDER / "week").iterdir())
    trend = json.loads(newest.read_text())
    del trend["tables"]["lake.sales.t0001"]
    newest.write_text(json.dumps(trend))
    assert list(Store(str(tmp_path)).trends().tables) == ["lake.sales.t0000", "lake.sales.t0002"]


def test_the_line_of_a_table_falls_where_a_repair_was_made(tmp_path: Path) -> None:
    trends = Store(str(two_weeks(tmp_path))).trends()
    series = samples(trends.tables[ORDERS], trends.actions[ORDERS], OVERLAP)
    assert [sample.value for sample in series] == [28.33, 1.0, 1.0]
    assert sparkline(series).startswith("M0 0h.1L")
    assert sparkline(series[:1]) == ""


def test_a_gap_in_the_measurements_is_a_gap_in_the_line(tmp_path: Path) -> None:
    trends = Store(str(year(tmp_path, tables=1, weeks=5))).trends()
    series = samples(trends.tables["lake.sales.t0000"], (), OVERLAP)
    gap = [item if position != 2 else type(item)(item.at, None) for position, item in enumerate(series)]
    assert sparkline(gap).count("M") == 2


@pytest.mark.parametrize(
    "params",
    [
        {"actions": ["rewrite_manifests"], "spec_id": 0, "sort_by": ["ordered_on_day"], "target_manifest_bytes": None},
        {
            "actions": ["set_properties"],
            "metrics_default": "counts",
            "metrics_columns": {"a = b": "truncate(16)", "c": ""},
            "target_manifest_bytes": 8_000_000,
        },
        {"actions": ["set_properties", "rewrite_manifests"], "metrics_default": "none", "spec_id": 1},
    ],
)
def test_the_forms_values_are_what_the_dag_reads_back(params: dict[str, Any]) -> None:
    table, request = maintenance_request(filled_in(ORDERS, params).values)
    assert str(table) == ORDERS
    assert request.dry_run
    for name, value in params.items():
        assert getattr(request, name) == (value if value is not None else None), name
