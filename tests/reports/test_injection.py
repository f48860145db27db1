"""Whatever text a table, a reason or a filter holds, the page has the same elements and attributes."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_health.identifiers import TableName
from planning_health.reports import build_report, render_html, render_mail

from . import sample_run as sample

PIECES = ["<", ">", '"', "'", "&", "&lt;", "</td>", "<script>", "onload=", " ", "=", "`", "{{ 7*7 }}", "{% raw %}"]
PIECES += ["-->", "]]>", "javascript:", "\u202e", "\n", "a", "é", "\\"]
TEXT = st.lists(st.sampled_from(PIECES) | st.characters(codec="utf-8"), min_size=1, max_size=8).map("".join)
TEXT = TEXT.filter(lambda text: text.strip() != "")


class Structure(HTMLParser):
    """The elements of a page in their order, each with the names of its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # where a long name may be broken: as many as it has dots and underscores
            self.elements.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))


def pages(text: str) -> list[str]:
    """A report whose table, finding, filter, reason and failed table all hold the text."""
    with TemporaryDirectory() as home:
        table = TableName("lake", ("sales",), text)
        run = sample.Sample(Path(home), "cli", "run", "2026-11-30T06:02:00+00:00")
        rows = [sample.manifest(n, sample.FIRST_DAY, sample.FIRST_DAY + 9) for n in range(3)]
        finding = {"id": "f", "title": text, "level": "critical", "evidence": text, "recommendation": "none"}
        run.measured(table, 1, 3, 9)
        run.put("health", table, data=sample.health_of(rows, state="critical", findings=[finding]))
        run.put("planning", table, data=sample.planning((text, text, 1, 3)))
        run.put("action", table, data=sample.action("failed"), status="failed", reason=text)
        run.put("measurement", TableName("lake", ("a",), text), status="failed", reason=text)
        report = build_report(run.folder)
        return [render_html(report), render_mail(report, "https://airflow.example.com/r")]


@pytest.fixture(scope="module")
def harmless() -> list[list[tuple[str, ...]]]:
    return [Structure(page).elements for page in pages("harmless")]


@settings(max_examples=40, deadline=None)
@given(TEXT)
def test_no_text_changes_the_structure_of_a_page(harmless: list[list[tuple[str, ...]]], text: str) -> None:
    assert [Structure(page).elements for page in pages(text)] == harmless
