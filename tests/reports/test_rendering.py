from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from planning_health.identifiers import TableName
from planning_health.reports import (
    Report,
    build_report,
    render_html,
    render_mail,
    render_markdown,
    terminal_predictions,
    terminal_summary,
)
from planning_health.reports.decisions import Decisions
from planning_health.reports.markdown import code, escape
from planning_health.reports.proposal_text import proposal_text
from planning_health.wording import percentage, quantity, sentence

from . import sample_run as sample

VOID = frozenset({"meta", "br", "wbr", "link", "img", "hr"})

HOSTILE = TableName("lake", ("sales",), '<script>alert("x")</script>`|[a](javascript:b)\u202e\n# h')


class Page(HTMLParser):
    """Collects what the tests ask of a page, and that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.figures: list[dict[str, str | None]] = []
        self.headings: list[int] = []
        self.unscoped: list[str] = []
        self.references: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags[tag] += 1
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if tag == "a":
            self.targets.append(str(attributes.get("href")))
        if tag == "svg":
            self.figures.append(attributes)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "th" and attributes.get("scope") not in ("col", "row"):
            self.unscoped.append(str(attrs))
        self.references += [str(attributes[name]) for name in ("src", "srcset", "data", "action") if name in attributes]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture
def model(tmp_path: Path) -> Report:
    sample.last_week(tmp_path)
    sample.repair(tmp_path)
    return build_report(sample.this_week(tmp_path).folder)


@pytest.fixture
def hostile(tmp_path: Path) -> Report:
    """A report on a table whose name, columns, values, findings and reasons all try to break out."""
    text = str(HOSTILE)
    rows = [sample.manifest(n, sample.FIRST_DAY, sample.FIRST_DAY + 9, path=f"s3://b/{text}") for n in range(3)]
    finding = {
        "id": "f",
        "title": text,
        "level": "critical",
        "evidence": text,
        "recommendation": "# a\n- b <img src=x>",
    }
    health = sample.health_of(rows, state="critical", findings=[finding])
    health["overlap"][0]["field"] = text
    for row in rows:
        row["ranges"][0] |= {"field": text, "lower_display": text, "upper_display": text}
    health["statistics_bytes"] = sample.statistics((text, 5), ("b", 3))
    run = sample.Sample(tmp_path, "cli", "run <b>", "2026-11-30T06:02:00+00:00")
    run.measured(HOSTILE, 1, 3, 9)
    run.put("health", HOSTILE, data=health)
    run.put("planning", HOSTILE, data=sample.planning((text, f"c = '{text}'", 1, 3)))
    run.put("proposal", HOSTILE, data=sample.proposal(HOSTILE))
    run.put("action", HOSTILE, data=sample.action("failed"), status="failed", reason=text)
    run.put("measurement", TableName("lake", ("a",), "<b>"), status="failed", reason=text)
    return build_report(run.folder)


def test_the_page_is_self_contained(model: Report) -> None:
    html = render_html(model)
    page = Page(html)
    assert page.tags["script"] == page.tags["link"] == page.tags["iframe"] == page.tags["img"] == 0
    assert page.references == []
    assert not re.search(r"(https?:)?//[a-z0-9.-]+\.[a-z]{2,}|@import|url\(", html.replace("s3://", ""))


def test_every_part_of_the_report_has_its_place_on_the_page(model: Report) -> None:
    page = Page(render_html(model))
    parts = {"attention", "better", "next", "tables", "changes", "actions", "details", "glossary"}
    assert parts <= set(page.ids)
    assert {table.anchor for table in model.tables} <= set(page.ids)


def test_a_mail_needs_no_style_sheet_script_or_picture_and_stays_below_what_clients_cut(model: Report) -> None:
    html = render_mail(model, "https://airflow.example.com/r?run_id=1")
    page = Page(html)
    assert page.tags["style"] == page.tags["script"] == page.tags["svg"] == page.tags["img"] == page.tags["link"] == 0
    assert "class=" not in html
    assert page.targets == ["https://airflow.example.com/r?run_id=1"]
    assert len(html.encode()) < 100_000
    for text in ("What needs attention first", "What got better", "What to do next", "Predicted: 42 → 6 manifests"):
        assert text in html


def test_a_mail_on_many_tables_names_how_many_it_leaves_out(model: Report) -> None:
    many = model.model_copy(update={"tables": [model.tables[0]] * 300, "attention": model.attention * 100})
    html = render_mail(many)
    assert "And 240 more tables in the whole report." in html
    assert "Open the whole report" not in html
    assert len(html.encode()) < 150_000


def test_hostile_text_cannot_leave_its_place_in_a_mail(hostile: Report) -> None:
    page = Page(render_mail(hostile))
    assert page.tags["script"] == page.tags["img"] == 0
    assert page.targets == []


def test_ids_are_unique_and_every_link_leads_to_one(model: Report) -> None:
    page = Page(render_html(model))
    assert [name for name, count in Counter(page.ids).items() if count > 1] == []
    assert {target.removeprefix("#") for target in page.targets} <= set(page.ids)


def test_the_page_is_accessible_by_headings_table_headers_and_labelled_figures(model: Report) -> None:
    page = Page(render_html(model))
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(following - former <= 1 for former, following in zip(page.headings, page.headings[1:], strict=False))
    assert page.unscoped == []
    assert page.figures
    assert all(figure.get("role") == "img" and figure.get("aria-label") for figure in page.figures)
    assert page.tags["figcaption"] == page.tags["figure"]


def test_what_is_not_measured_is_said_so(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    run.measured(sample.ORDERS, 1, 3, 9)
    html = render_html(build_report(run.folder))
    assert 'class="unknown">not measured</dd>' in html
    assert "Was not diagnosed in this run." in html


def test_the_page_states_when_which_snapshot_and_which_version(model: Report) -> None:
    html = render_html(model)
    assert "Measured Mon 30 Nov 2026, 06:02 UTC" in html
    assert "snapshot <code>90</code>" in html
    assert f"planning-health {model.product_version}" in html


def test_what_waits_for_a_decision_links_to_the_form_with_its_values(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    html = render_html(build_report(run.folder, Decisions(airflow_url="https://airflow.example.com")))
    assert '<a class="screen-only" href="#next">Decide on it.</a>' in html
    page = "https://airflow.example.com/plugin/planning-health/planning-health/table/maintain"
    assert f'<a href="{page}?name=lake.sales.customers&amp;proposal=rewrite_manifests_spec_0">' in html


def test_without_airflow_s_address_the_form_s_values_are_told(tmp_path: Path) -> None:
    html = render_html(build_report(sample.this_week(tmp_path).folder))
    assert "In Airflow's form: table: lake.sales.customers; actions: rewrite_manifests; spec id: 0." in html


def test_the_report_of_a_dry_run_says_so_in_html_and_markdown(tmp_path: Path) -> None:
    model = build_report(sample.dry_run(tmp_path).folder)
    assert "<h1>Maintenance (dry run): lake.sales.orders</h1>" in render_html(model)
    markdown = render_markdown(model)
    assert markdown.startswith("# Maintenance (dry run): lake.sales.orders\n")
    assert "Dry run: nothing was changed." in markdown


def test_the_same_model_gives_the_same_page(model: Report) -> None:
    assert render_html(model) == render_html(Report.model_validate_json(model.model_dump_json()))


def test_hostile_text_cannot_leave_its_place_in_html(hostile: Report) -> None:
    html = render_html(hostile)
    page = Page(html)
    assert page.tags["script"] == page.tags["img"] == 0
    assert all(target.startswith("#") for target in page.targets)
    assert "\u202e" not in html
    assert "\\u202e" in html


def test_hostile_text_cannot_leave_its_place_in_markdown(hostile: Report) -> None:
    markdown = render_markdown(hostile)
    outside_code = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", markdown.replace("\\`", ""))
    assert "<" not in outside_code
    assert not re.search(r"(?<!\\)\]\(", outside_code)
    assert "\u202e" not in markdown
    headings = [line for line in markdown.splitlines() if line.lstrip().startswith("#")]
    assert all(re.fullmatch(r"#{1,2} [A-Z][A-Za-z0-9, ]+", line) for line in headings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ordered_on", "ordered_on"),
        ("_a_ *b*", "\\_a\\_ \\*b\\*"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("# title", "\\# title"),
        ("<!channel> @all", "&lt;!channel&gt; \\@all"),
        ("https://evil", "https\\://evil"),
        ("[a](b)", "\\[a\\](b)"),
        ("a\n\nb", "a b"),
    ],
)
def test_markdown_text_is_escaped(text: str, expected: str) -> None:
    assert escape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a`", "`` `a` ``"), ("a\nb", "`a b`")]
)
def test_a_code_span_holds_any_text(text: str, expected: str) -> None:
    assert code(text) == expected


def test_markdown_tells_the_same_story_in_short(model: Report) -> None:
    markdown = render_markdown(model)
    assert "## What needs attention first" in markdown
    assert "**failed** `lake.broken.lost_manifest`" in markdown
    assert "Manifests 42 → 6 (predicted 6)" in markdown
    assert "Metadata read by the query one_day 291 KB → 60 KB (predicted 58 KB, off by 3.3%)" in markdown.replace(
        "\\_", "_"
    )


def test_the_page_holds_predictions_against_facts(model: Report) -> None:
    row = render_html(model).split("Metadata read by the query one_day")[-1].split("</tr>")[0]
    assert re.findall(r">([^<>]+)</td>", row) == ["291 KB", "58 KB", "60 KB", "3.3%"]


def test_the_terminal_holds_predictions_against_facts(model: Report) -> None:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(terminal_predictions(model))
    lines = [line.replace("│", " ").split() for line in capture.get().splitlines() if "one_day" in line]
    assert [line[-3:] for line in lines] == [["1", "1", "0%"], ["60", "KB", "3.3%"]]
    assert terminal_predictions(model.model_copy(update={"actions": []})) is None


def test_the_terminal_summary_has_a_row_for_each_table(model: Report) -> None:
    table = terminal_summary(model)
    assert table.row_count == len(model.tables)
    assert [column.header for column in table.columns] == ["Table", "State", "Worst finding", "Before → after"]


def test_the_terminal_summary_shows_names_as_they_are_not_as_markup(tmp_path: Path) -> None:
    name = TableName("lake", ("sales",), "[red]x[/red]")
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    run.measured(name, 1, 3, 9)
    console = Console(width=160)
    with console.capture() as capture:
        console.print(terminal_summary(build_report(run.folder)))
    assert "[red]x[/red]" in capture.get()


def test_the_proposal_for_approval_keeps_hostile_text_in_its_place(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    data = sample.proposal(HOSTILE)
    data["proposals"][0] |= {"title": "<b>x", "commands": [f"CALL x('{HOSTILE}') ```` y"]}
    run.put("proposal", HOSTILE, snapshot_id=1, data=data)
    text = proposal_text(run.folder.require_result("proposal", HOSTILE))
    assert "### &lt;b&gt;x" in text
    assert "`````sql" in text
    assert "\u202e" not in text


def test_the_proposal_for_approval_shows_changes_effect_and_risk(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    data = sample.proposal(sample.ORDERS)
    data["proposals"][0] |= {"commands": ["CALL x()", "planning-health maintain t --trim --apply"], "undo": []}
    run.put("proposal", sample.ORDERS, snapshot_id=1, data=data)
    text = proposal_text(run.folder.require_result("proposal", sample.ORDERS))
    assert "Spec 0: 42 → 6 manifests" in text
    assert "```sql\nCALL x();\n```\n\n```sh\nplanning-health maintain t --trim --apply\n```" in text
    assert "written again without the statistics that the metrics configuration does not ask for" in text
    assert "| Manifests | 42 | 6 |" in text
    assert "| Manifests opened by the query one_day | 31 | 1 |" in text
    assert "**Risk:** Metadata only" in text
    assert "undo" not in text


def test_a_long_statement_is_broken_between_its_parts_and_never_inside_quotes(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "cli", "r", "2026-11-30T06:02:00+00:00")
    data = sample.proposal(sample.ORDERS)
    statement = f"ALTER TABLE `a, b` SET TBLPROPERTIES ('x' = 'it\\'s, {'long ' * 20}', 'y' = 'z')"
    data["proposals"][0] |= {"commands": [statement]}
    run.put("proposal", sample.ORDERS, snapshot_id=1, data=data)
    text = proposal_text(run.folder.require_result("proposal", sample.ORDERS))
    assert f"ALTER TABLE `a, b` SET TBLPROPERTIES ('x' = 'it\\'s, {'long ' * 20}',\n  'y' = 'z');" in text


def test_a_single_run_gets_a_report_of_its_own_without_the_overview(tmp_path: Path) -> None:
    run = sample.repair(tmp_path)
    run.measured(sample.ORDERS, 41, 42, 1512)
    model = build_report(run.folder)
    assert model.title == "Maintenance: lake.sales.orders"
    assert model.lede.startswith("Manifests rewritten: 42 → 6 manifests")
    html, markdown = render_html(model), render_markdown(model)
    page = Page(html)
    assert "attention" not in page.ids
    assert "What was done" in html
    assert markdown.startswith("# Maintenance: lake.sales.orders\n")
    assert "What needs attention first" not in markdown


def test_what_a_run_has_carried_out_waits_for_no_decision(tmp_path: Path) -> None:
    run = sample.repair(tmp_path)
    run.measured(sample.ORDERS, 41, 42, 1512)
    run.put("proposal", sample.ORDERS, data=sample.proposal(sample.ORDERS))
    model = build_report(run.folder)
    markdown = render_markdown(model)
    assert "Rewrite the manifests of spec 0. Predicted: 42 → 6 manifests" in markdown
    for shown in (markdown, render_mail(model)):
        assert "waits for a decision" not in shown
        assert "planning-health maintain" not in shown
    page = render_html(model)
    assert page.index("What was done") < page.index("What was proposed")
    assert "Carry it out" not in page
    asked = render_markdown(build_report(sample.dry_run(tmp_path).folder))
    assert "waits for a decision" in asked


def test_a_what_if_run_shows_what_each_query_would_read(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, "planning_what_if", "manual__1", "2026-11-30T07:00:00.000+00:00")
    run.measured(sample.ORDERS, 41, 42, 1512)
    sides = [
        {"data_manifests": count, "delete_manifests": 1, "data_files": 12, "metadata_bytes": count * 1000}
        for count in (41, 2)
    ]
    reads = dict(zip(("before", "after"), sides, strict=True))
    alternative = {
        "id": "partition_spec",
        "title": "Partitioned by days(`<b>`)",
        "notes": ["all data is rewritten"],
        "table": reads,
        "predicates": [{"name": "one_day", "where": "d < '<i>'", "weight": 1.0, **reads}],
    }
    run.put("what_if", sample.ORDERS, data={"alternatives": [alternative], "reason": None})
    model = build_report(run.folder)
    assert model.lede.startswith("Partitioned by days(`<b>`): 1 query would open 42 → 3 manifests and read 12 → 12")
    html, markdown = render_html(model), render_markdown(model)
    assert "<h4>What if</h4>" in html
    assert '<td class="n">42 → 3</td>' in html
    assert "<b>`)" not in html
    assert "All data is rewritten." in html
    assert "manifests 42 → 3, data files 12 → 12" in markdown


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(1, "entries", "1 entry"), (2, "entries", "2 entries"), (1, "days", "1 day"), (1.0, "bytes", "1 byte")],
)
def test_one_of_something_is_not_many(value: float, unit: str, expected: str) -> None:
    assert quantity(value, unit) == expected


@pytest.mark.parametrize(("share", "expected"), [(0, "0%"), (0.0002, "under 0.1%"), (0.002, "0.2%"), (0.5, "50%")])
def test_a_share_that_is_not_zero_is_not_shown_as_zero(share: float, expected: str) -> None:
    assert percentage(share) == expected


def test_what_the_next_append_undoes_stands_beside_what_is_predicted(tmp_path: Path) -> None:
    run = sample.this_week(tmp_path)
    data = sample.proposal(sample.CUSTOMERS)
    overlap = [{"spec_id": 0, "field": "ordered_on_day", "mean": 6.0}]
    data["proposals"][0]["after_next_append"] = {"manifests": 1, "metadata_bytes": 340_000, "overlap": overlap}
    run.put("proposal", sample.CUSTOMERS, data=data)
    model = build_report(run.folder)
    told = (
        "The next append is predicted to merge manifests again (as Spark does, not PyIceberg): 1 → 6 manifests opened "
        "by a query for one"
    )
    for shown in (render_html(model), render_mail(model), render_markdown(model)):
        assert told in shown
    section = render_html(model).split("<h4>Proposals</h4>")[1]
    assert "After the next append" in section
    row = section.split("for one ordered_on_day, mean")[1].split("</tr>")[0]
    assert re.findall(r">([^<>]+)</td>", row) == ["28.9", "1", "6"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a table is wide", "A table is wide."),
        ("c17219e9-1f5b-m0.avro (50% of 8 entries)", "c17219e9-1f5b-m0.avro (50% of 8 entries)."),
        ("ordered_on is wide!", "ordered_on is wide!"),
        ("", ""),
    ],
)
def test_a_sentence_leaves_names_as_they_are(text: str, expected: str) -> None:
    assert sentence(text) == expected
