"""The pages as a browser gets them: what they show, what they refuse, and that nothing leaves them."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.pages.app import Access, create_app
from planning_health.pages.links import Links, maintain_path, run_path, run_report_path, table_path
from planning_health.pages.store import Store
from planning_health.run_folder import run_key
from planning_health.stages.report import report

from ..reports import sample_run as sample
from .conftest import STARTED, Serve
from .homes import two_weeks, year

ORDERS, CUSTOMERS = table_path(str(sample.ORDERS)), table_path(str(sample.CUSTOMERS))
REPORT = f"/reports/2026-W49-{run_key(sample.THIS_WEEK)}"
PROPOSAL = "rewrite_manifests_spec_0"
FORM = maintain_path(str(sample.CUSTOMERS), PROPOSAL)
OWN_FORM = maintain_path(str(sample.CUSTOMERS))
CHOSEN = {"name": str(sample.CUSTOMERS), "proposal": PROPOSAL, "actions": "rewrite_manifests", "spec_id": "0"}
RUN = run_path(sample.WEEKLY, sample.THIS_WEEK)
ALL = ("/", "/reports", ORDERS, CUSTOMERS, REPORT, FORM, OWN_FORM, RUN, "/nothing")


class Outline(HTMLParser):
    """What a screen reader and a browser find in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]

    def chosen(self) -> set[str | None]:
        """The values of a form that are chosen."""
        return {field["value"] for field in self.all("input", "option") if {"checked", "selected"} & set(field)}


def rows(text: str) -> list[str]:
    """The tables that a list shows, in order."""
    return re.findall(r'<th scope="row"><a href="/planning-health/table\?name=lake.([^"]+)"', text)


def test_the_list_shows_every_table_with_its_state_the_most_urgent_first(pages: TestClient) -> None:
    text = pages.get("/").text
    assert rows(text)[:3] == ["sales.customers", "broken.lost_manifest", "ops.sensor_readings"]
    assert len(rows(text)) == 7
    assert 'aria-label="Overlap depth from 28.3 manifests to 1 manifest since 23 Nov 2026"' in text
    assert "1 proposal</span>" in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"q": "CUST"}, ["sales.customers"]),
        ({"state": "failed"}, ["broken.lost_manifest"]),
        ({"q": "sales", "sort": "name"}, ["sales.customers", "sales.daily_totals", "sales.orders", "sales.wishlist"]),
        ({"sort": "metadata", "state": "warning"}, ["ops.sensor_readings"]),
        ({"q": "nothing like it"}, []),
        ({"state": "no such state", "q": "orders"}, []),
    ],
)
def test_the_list_is_filtered_and_sorted_on_the_server(
    pages: TestClient, query: dict[str, str], shown: list[str]
) -> None:
    assert rows(pages.get("/", params=query).text) == shown


def test_a_year_of_500_tables_comes_in_pages_of_a_hundred(serve: Serve, tmp_path: Path) -> None:
    pages = serve(year(tmp_path, tables=500))
    first, last = pages.get("/").text, pages.get("/", params={"page": 5, "sort": "name"}).text
    assert len(rows(first)) == 100
    assert rows(last)[-1] == "sales.t0499"
    assert "page 5 of 5" in last
    assert len(first) < 300_000
    assert rows(pages.get("/", params={"page": 99, "sort": "name"}).text) == rows(last)


def test_before_the_first_run_the_list_says_how_to_begin(serve: Serve, tmp_path: Path) -> None:
    answer = serve(tmp_path).get("/")
    assert answer.status_code == 200
    assert "No run has left a report yet" in answer.text


def test_a_tables_page_shows_before_and_after_of_its_repair_and_leads_to_the_runs(pages: TestClient) -> None:
    text = pages.get(ORDERS).text
    assert "Before, 23 Nov 2026 06:02: 42 of 42 manifests" in text
    assert "After, 30 Nov 2026 06:02: 1 of 6 manifests" in text
    assert "done and checked" in text
    assert "Before, predicted and after" in text
    assert "To go back, while this is still the newest snapshot" in text
    assert "/dags/table_maintenance/runs/manual__2026-11-26T09%3A30%3A00%2B00%3A00" in text
    assert "Overlap depth: from 28.3 manifests to 1 manifest since 23 Nov 2026" in text
    assert "Metadata bytes by column" in text
    assert "Growth since the repair of 26 Nov 2026, from 1 measurement" in text
    assert "Bytes per task" in text


def test_a_repair_that_is_newer_than_the_measurement_is_told(serve: Serve, tmp_path: Path) -> None:
    for run in (sample.last_week(tmp_path), sample.repair(tmp_path)):
        report(sample.SETTINGS, run.folder)
    pages = serve(tmp_path)
    assert "repaired 26 Nov 2026, not measured since" in pages.get("/").text
    assert "<b>Repaired Thu 26 Nov 2026, 09:32 UTC.</b>" in pages.get(ORDERS).text


def test_a_table_whose_results_are_gone_keeps_its_numbers_over_time(serve: Serve, tmp_path: Path) -> None:
    text = serve(year(tmp_path, tables=3)).get(table_path("lake.sales.t0001")).text
    assert "results of this table's runs were removed" in text
    assert text.count('class="over-time"') >= 3
    assert "The numbers of each run (52)" in text


def test_the_report_is_served_inside_the_pages(pages: TestClient) -> None:
    text = pages.get(REPORT).text
    assert "What needs attention first" in text
    assert 'aria-label="Planning health"' in text
    assert "<style>" not in text


def test_a_run_leads_to_its_report_and_tables_and_a_mapped_task_to_its_table(pages: TestClient) -> None:
    text = pages.get(RUN).text
    assert "The report of this run" in text
    assert text.count("<li>") == 7
    assert pages.get(run_path(sample.WEEKLY, sample.THIS_WEEK, 1)).headers["location"].endswith(CUSTOMERS)
    assert "What needs attention first" in pages.get(run_report_path(sample.WEEKLY, sample.THIS_WEEK)).text


def test_a_run_of_another_dag_shows_nothing_of_any_folder(serve: Serve, tmp_path: Path) -> None:
    two_weeks(tmp_path)
    (tmp_path / "runs" / "table_maintenance").rename(tmp_path / "runs" / "secret")
    text = serve(tmp_path).get(run_path("secret", sample.REPAIR)).text
    assert "lake." not in text
    assert "left no report yet" in text


def test_a_run_under_way_leads_to_its_approval(pages: TestClient) -> None:
    text = pages.get(run_path("table_maintenance", STARTED)).text
    assert "left no report yet" in text
    assert "/tasks/approve/required_actions" in text
    assert 'data-again="20"' in text


def test_a_run_that_failed_says_why(serve: Serve, tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "table_maintenance", STARTED, "2026-11-30T07:00:00+00:00")
    run.put("conclusion", status="failed", reason="read_form: no column <x>")
    text = serve(tmp_path).get(run_path("table_maintenance", STARTED)).text
    assert "<b>This run failed.</b> read_form: no column &lt;x&gt;." in text
    assert "It left no report" in text
    assert "data-again" not in text


def test_a_run_that_waits_for_a_decision_says_what_it_proposes(serve: Serve, tmp_path: Path) -> None:
    run = sample.dry_run(tmp_path)
    text = serve(tmp_path).get(run_path(run.dag_id, run.run_id)).text
    assert "left no report yet" in text
    assert "<li>Rewrite the manifests of spec 0.</li>" in text


def test_the_form_starts_maintenance_with_the_proposals_values(
    pages: TestClient, started: list[dict[str, Any]]
) -> None:
    assert "Start the run" in pages.get(FORM).text
    answer = pages.post("/table/maintain", data=CHOSEN | {"dry_run": "false", "approval": "true"})
    assert answer.status_code == 303
    assert answer.headers["location"] == Links("/planning-health").run("table_maintenance", STARTED)
    assert started == [
        {
            "table": str(sample.CUSTOMERS),
            "actions": ["rewrite_manifests"],
            "dry_run": False,
            "approval": True,
            "spec_id": 0,
        }
    ]


def test_the_form_opens_with_the_proposals_values_and_offers_what_the_last_measurement_found(pages: TestClient) -> None:
    opened, own = Outline(pages.get(FORM).text), Outline(pages.get(OWN_FORM).text)
    assert opened.chosen() == {"rewrite_manifests", "0", "true"}
    assert own.chosen() == {"rewrite_manifests", "true"}
    offered = {option["value"] for option in own.all("option")}
    assert {"0", "full", "order_id = none", "status = truncate(16)", "status = "} <= offered
    assert {"type": "checkbox", "id": "sort-1", "name": "sort_by", "value": "ordered_on_day"} in own.all("input")


def test_the_form_starts_maintenance_with_values_of_a_persons_own(
    pages: TestClient, started: list[dict[str, Any]]
) -> None:
    own = {
        "name": str(sample.CUSTOMERS),
        "actions": ["set_properties", "rewrite_manifests"],
        "sort_by": ["ordered_on_day"],
        "target_manifest_bytes": " 8000000 ",
        "metrics_columns": ["", "order_id = full", ""],
    }
    assert pages.post("/table/maintain", data=own).status_code == 303
    assert started == [
        {
            "table": str(sample.CUSTOMERS),
            "actions": ["set_properties", "rewrite_manifests"],
            "dry_run": True,
            "approval": True,
            "sort_by": ["ordered_on_day"],
            "metrics_columns": ["order_id = full"],
            "target_manifest_bytes": 8_000_000,
        }
    ]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"target_manifest_bytes": "8 MB"}, "Target size of a manifest: Input should be a valid integer"),
        ({"target_manifest_bytes": "12"}, "Target size of a manifest: Input should be greater than or equal to 1024"),
        (
            {"metrics_columns": ["order_id full"]},
            "Statistics of single columns: &#39;order_id full&#39; is not of the form",
        ),
        ({}, "The action &#39;set_properties&#39; needs metrics modes"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_by_its_label_and_the_form_stays_filled_in(
    pages: TestClient, started: list[dict[str, Any]], values: dict[str, Any], problem: str
) -> None:
    answer = pages.post("/table/maintain", data=CHOSEN | {"actions": "set_properties", "spec_id": "", **values})
    assert answer.status_code == 400
    assert problem in answer.text
    assert 'role="alert"' in answer.text
    assert "set_properties" in Outline(answer.text).chosen()
    assert started == []


def test_the_form_says_when_the_settings_let_nobody_be_asked(serve: Serve, tmp_path: Path) -> None:
    text = serve(two_weeks(tmp_path), asks=False).get(FORM).text
    assert "Nobody is asked before the table is changed" in text
    assert "Ask a person" not in text
    assert "Start the run" in text


def test_a_dry_run_with_approval_is_what_happens_unless_something_else_is_chosen(
    pages: TestClient, started: list[dict[str, Any]]
) -> None:
    pages.post("/table/maintain", data=CHOSEN)
    assert (started[0]["dry_run"], started[0]["approval"]) == (True, True)


@pytest.mark.parametrize("choices", [{"proposal": "another"}, {"name": "lake.sales.unknown"}])
def test_a_proposal_that_is_gone_starts_nothing(
    pages: TestClient, started: list[dict[str, Any]], choices: dict[str, str]
) -> None:
    assert pages.post("/table/maintain", data=CHOSEN | choices).status_code == 404
    assert started == []


def test_a_form_from_another_site_starts_nothing(pages: TestClient, started: list[dict[str, Any]]) -> None:
    answer = pages.post(
        "/table/maintain",
        data=CHOSEN,
        headers={"sec-fetch-site": "cross-site"},
    )
    assert answer.status_code == 403
    assert started == []


def test_who_may_only_look_sees_the_values_but_starts_nothing(pages: TestClient, started: list[dict[str, Any]]) -> None:
    reader = {"person": "reader"}
    text = pages.get(FORM, headers=reader).text
    assert "Start the run" not in text
    assert "rewrite_manifests" in text
    answer = pages.post("/table/maintain", data=CHOSEN, headers=reader)
    assert answer.status_code == 403
    assert started == []


@pytest.mark.parametrize("path", [*ALL[:-1], "/page.css", "/page.js", run_report_path(sample.WEEKLY, "x")])
def test_anonymous_access_is_refused_everywhere(pages: TestClient, path: str) -> None:
    answer = pages.get(path, headers={"person": ""})
    assert answer.status_code == 401
    assert "orders" not in answer.text


def test_the_framework_adds_no_page_of_its_own(pages: TestClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert pages.get(path, headers={"person": ""}).status_code in (401, 404)


@pytest.mark.parametrize(
    "path",
    [
        "/table",
        "/table?name=",
        "/table?name=../../etc/passwd",
        "/table?name=lake.sales.unknown",
        "/table?name=lake.`..%2F..`.x",
        "/table/maintain?name=../..&proposal=x",
        "/reports/..%2F..%2Fruns",
        "/reports/latest",
        "/reports/%2e%2e",
        "/run/report?dag_id=..&run_id=..",
        "/run/report?dag_id=cli&run_id=x",
        "/run/report?dag_id=planning_health_weekly&run_id=../../settings",
    ],
)
def test_an_address_reaches_nothing_but_what_the_runs_named(pages: TestClient, path: str) -> None:
    answer = pages.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_a_value_that_makes_no_sense_is_refused_by_name(pages: TestClient) -> None:
    answer = pages.get("/", params={"page": "<b>many</b>"})
    assert answer.status_code == 400
    assert "Page: Input should be a valid integer" in answer.text
    assert "<b>many" not in answer.text


def test_a_home_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    def broken() -> Store:
        raise InputError("settings file '/x.yaml' does not exist")

    access = Access([], [], lambda: False, lambda: True)
    app = create_app(broken, access, lambda request, form: "")
    answer = TestClient(app).get("/")
    assert answer.status_code == 500
    assert "does not exist" in answer.text


def test_hostile_names_are_shown_and_not_obeyed(serve: Serve, tmp_path: Path) -> None:
    hostile = TableName("lake", ("<script>alert(1)</script>",), "a\"'/../&\u202eb`.c")
    run = sample.this_week(tmp_path)
    run.put("measure", data={"tables": [str(hostile)], "failed": {}})
    run.measured(hostile, 1, 6, 10)
    run.put("health", hostile, snapshot_id=1, data=sample.wide_orders())
    run.put("proposal", hostile, data=sample.proposal(hostile))
    report(sample.SETTINGS, run.folder)
    pages = serve(tmp_path)
    listed = pages.get("/", params={"q": '"><script>alert(2)</script>'}).text
    assert "<script>alert" not in listed
    text = pages.get("/").text
    assert "<script>alert" not in text
    assert "\u202e" not in text
    own = pages.get(table_path(str(hostile)))
    assert own.status_code == 200
    assert "<script>alert" not in own.text
    form = pages.get(maintain_path(str(hostile), PROPOSAL))
    assert form.status_code == 200
    assert "<script>alert" not in form.text


@pytest.mark.parametrize("path", ALL)
def test_no_page_loads_anything_from_elsewhere(pages: TestClient, path: str) -> None:
    answer = pages.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r'(?:src|href|action)="(?:https?:)?//', answer.text)
    assert " style=" not in answer.text
    assert " onclick=" not in answer.text
    assert "url(" not in pages.get("/page.css").text


@pytest.mark.parametrize("path", ALL)
def test_pages_are_usable_by_keyboard_and_screen_reader(pages: TestClient, path: str) -> None:
    outline = Outline(pages.get(path).text)
    assert outline.all("html")[0]["lang"] == "en"
    assert len(outline.all("main")) == 1
    assert len(outline.all("h1")) == 1
    assert outline.all("nav")[0].get("aria-label") == "Planning health"
    assert all(picture.get("aria-label") for picture in outline.all("svg") if picture.get("role") == "img")
    labelled = {label["for"] for label in outline.all("label")}
    shown = [field for field in outline.all("input", "select") if field.get("type") != "hidden"]
    assert {field["id"] for field in shown} <= labelled
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    regions = [region for region in outline.all("div") if region.get("role") in ("region", "group")]
    assert all(region.get("tabindex") == "0" for region in regions)
    assert all(region.get("aria-label") or region.get("aria-labelledby") for region in regions)


@pytest.mark.parametrize("path", [path for path in ALL if path != REPORT])
def test_headings_skip_no_level(pages: TestClient, path: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(pages.get(path).text).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))


def test_light_and_dark_both_have_contrast_and_can_be_chosen(pages: TestClient) -> None:
    from planning_health.reports.html import DARK, LIGHT

    style = pages.get("/page.css").text
    assert ':root[data-theme="dark"]' in style
    assert "prefers-color-scheme: dark" in style
    for colours in (LIGHT, DARK):
        for name in ("ink", "muted", "link", "critical", "warning", "ok", "failed"):
            assert contrast(colours[name], colours["page"]) >= 4.5, name
            assert contrast(colours[name], colours["panel"]) >= 4.5, name


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_below_another_path_all_links_stay_below_it(tmp_path: Path) -> None:
    links = Links("/airflow/planning-health")
    assert links.airflow == "/airflow"
    assert links.airflow_run(sample.WEEKLY, "a:b") == "/airflow/dags/planning_health_weekly/runs/a%3Ab"
    assert links.airflow_run("cli", "x") == ""
    assert two_weeks(tmp_path).exists()
