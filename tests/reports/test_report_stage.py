from __future__ import annotations

import html
from pathlib import Path

from planning_health.reports import read_report
from planning_health.run_folder import run_key
from planning_health.stages.report import report

from . import sample_run as sample

NAMES = ["index.html", "mail.html", "report.json", "report.md"]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_report_is_written_into_the_run_and_published(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    envelope = report(sample.SETTINGS, run.folder)
    published = tmp_path / "reports" / f"2026-W49-{run_key(run.run_id)}"
    for folder in (Path(run.folder.url) / "report", tmp_path / "reports" / "latest", published):
        assert files(folder) == NAMES
    assert envelope.headline == {
        "tables": 7,
        "critical": 1,
        "warning": 1,
        "ok": 4,
        "failed": 1,
        "proposals": 1,
        "actions": 0,
    }


def test_the_report_says_what_apply_needs_with_the_next_steps_and_beside_the_command(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    report(sample.SETTINGS, run.folder)
    needs = (
        "--apply needs pip install '.[spark]', Java 17 or 21 and catalog 'lake' defined as type: jdbc instead of sql"
    )
    shown = {name: (Path(run.folder.url) / "report" / name).read_text() for name in NAMES}
    assert html.unescape(shown["index.html"]).count(needs) == 2
    assert html.unescape(shown["mail.html"]).count(needs) == 1
    assert "Java 17 or 21 and catalog" in shown["report.md"]


def test_a_repeated_run_overwrites_its_own_report_and_does_not_compare_with_itself(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    report(sample.SETTINGS, run.folder)
    report(sample.SETTINGS, run.folder)
    assert len(files(tmp_path / "reports")) == 2
    model = read_report(str(tmp_path / "reports" / "latest" / "report.json"))
    assert model is not None
    assert model.previous is None


def test_a_report_on_one_table_does_not_replace_the_report_of_the_week(tmp_path: Path) -> None:
    report(sample.SETTINGS, sample.this_week(tmp_path).folder)
    latest = (tmp_path / "reports" / "latest" / "report.json").read_text()
    repair = sample.repair(tmp_path)
    envelope = report(sample.SETTINGS, repair.folder)
    assert (tmp_path / "reports" / "latest" / "report.json").read_text() == latest
    assert envelope.headline["actions"] == 1


def test_a_report_on_chosen_tables_stays_in_its_run_and_no_other_is_compared_with_it(tmp_path: Path) -> None:
    whole = sample.Sample(tmp_path, "cli", "all", "2026-11-23T06:02:00+00:00")
    for name in (sample.ORDERS, sample.TOTALS):
        whole.measured(name, 41, 42, 1512)
        whole.put("health", name, data=sample.wide_orders())
    report(sample.SETTINGS, whole.folder)
    latest = (tmp_path / "reports" / "latest" / "report.json").read_text()
    one = sample.Sample(tmp_path, "cli", "one", "2026-11-24T06:02:00+00:00")
    one.measured(sample.ORDERS, 42, 6, 1512)
    one.put("health", sample.ORDERS, data=sample.clustered_orders())
    report(sample.SETTINGS, one.folder, chosen=True)
    assert (tmp_path / "reports" / "latest" / "report.json").read_text() == latest
    assert [path.name for path in (tmp_path / "history" / "week").iterdir()] == [
        f"20261123T060200Z-{run_key('all')}.json"
    ]
    model = read_report(f"{one.folder.url}/report/report.json")
    assert model is not None
    assert model.previous is not None
    assert (model.previous.run_id, model.changes.gone_tables) == ("all", [])
    assert model.title.startswith("Planning health of lake.sales.orders, week ")
    assert "What needs attention first" in Path(one.folder.url, "report", "report.md").read_text()
    later = sample.Sample(tmp_path, "cli", "later", "2026-11-25T06:02:00+00:00")
    later.measured(sample.ORDERS, 42, 6, 1512)
    report(sample.SETTINGS, later.folder)
    compared = read_report(str(tmp_path / "reports" / "latest" / "report.json"))
    assert compared is not None
    assert compared.previous is not None
    assert compared.previous.run_id == "all"


def test_an_unreadable_previous_report_is_passed_over(tmp_path: Path) -> None:
    report(sample.SETTINGS, sample.last_week(tmp_path).folder)
    (published,) = (tmp_path / "reports").glob("2026-W48-*/report.json")
    published.write_text('{"schema_version": 99}')
    report(sample.SETTINGS, sample.this_week(tmp_path).folder)
    model = read_report(str(tmp_path / "reports" / "latest" / "report.json"))
    assert model is not None
    assert model.previous is None


def test_a_report_is_compared_with_the_one_before_it_not_with_a_later_or_another_dag_s(tmp_path: Path) -> None:
    last = sample.last_week(tmp_path)
    report(sample.SETTINGS, last.folder)
    by_hand = sample.Sample(tmp_path, "cli", "one table", "2026-11-29T12:00:00+00:00")
    by_hand.measured(sample.ORDERS, 41, 42, 1512)
    report(sample.SETTINGS, by_hand.folder)
    report(sample.SETTINGS, sample.this_week(tmp_path).folder)
    this = read_report(str(tmp_path / "reports" / "latest" / "report.json"))
    assert this is not None
    assert this.previous is not None
    assert this.previous.run_id == last.run_id
    report(sample.SETTINGS, last.folder)
    repeated = read_report(f"{last.folder.url}/report/report.json")
    assert repeated is not None
    assert repeated.previous is None
    assert read_report(str(tmp_path / "reports" / "latest" / "report.json")) == this


def test_twelve_tables_stay_below_two_megabytes(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    for number in range(12):
        name = sample.TableName("lake", ("big",), f"t{number}")
        rows = [sample.manifest(n, sample.FIRST_DAY + n, sample.FIRST_DAY + n + 60) for n in range(800)]
        run.measured(name, 1, 800, 9_000)
        run.put("health", name, data=sample.health_of(rows, state="critical", findings=[sample.WIDE_FINDING]))
    report(sample.SETTINGS, run.folder)
    assert (tmp_path / "reports" / "latest" / "index.html").stat().st_size < 2_000_000
