"""The simulations of the heaviest query in the report: tables, figures, and what they cannot say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from planning_health.assignment import AFFINITY_LIMITS, BALANCE_LIMITS
from planning_health.reports import Report, build_report, render_html, render_markdown
from planning_health.reports.figure_data import affinity_figure

from . import sample_run as sample

LIMITS = list(dict.fromkeys((*BALANCE_LIMITS, *AFFINITY_LIMITS)))


def balance(*loads: int) -> dict[str, Any]:
    mean = sum(loads) / len(loads)
    return {
        "makespan": max(loads),
        "mean": mean,
        "skew": max(loads) / mean,
        "loads": list(loads),
        "files": [4] * len(loads),
    }


def homes(at_old_home: float, share: float) -> dict[str, Any]:
    return {
        "moved_keys": 3,
        "moved_tasks": 1,
        "share": {"fraction": share},
        "at_old_home": {"fraction": at_old_home},
    }


def assignment() -> dict[str, Any]:
    """Eight files on four tasks, as the stage writes it."""
    return {
        "query": {"name": "everything", "where": "size >= 0"},
        "planned": {"files": 8, "bytes": 100_000_000, "rows": None, "exact": False},
        "planning_limit": {"max_files": 100_000, "exceeded": False, "message": None},
        "task_hint": {"tasks": 4, "workers": 4},
        "comparisons": [
            {
                "tasks": 4,
                "default": balance(64_000_000, 20_000_000, 9_000_000, 7_000_000),
                "greedy": balance(*[25_000_000] * 4),
                "lower_bound": 25_000_000,
            },
            {"tasks": 1, "default": balance(100_000_000), "greedy": balance(100_000_000), "lower_bound": 100_000_000},
        ],
        "split": {
            "target_bytes": 16_000_000,
            "parts": 9,
            "largest_part_bytes": 16_000_000,
            "comparisons": [{"tasks": 4, "greedy": balance(*[24_000_000] * 4)}],
        },
        "affinity": {
            "workers": [f"http://worker-{number}/" for number in range(4)],
            "preferred": {f"http://worker-{number}/": number % 3 for number in range(4)},
            "home": {"fraction": 0.52},
            "one_leaves": homes(0.41, 0.57),
            "one_joins": homes(0.44, 0.48),
        },
        "limits": LIMITS,
    }


def plan_tasks() -> dict[str, Any]:
    """Eight tasks in batches of three from two replicas."""
    designs = ("everything inline", "offset tokens, no cache", "offset tokens, plan cache", "entry ranges")
    return {
        **sample.plan_tasks(3),
        "tasks": 8,
        "batch_size": 3,
        "replicas": 2,
        "plans_computed": {"no_cache": 3, "affinity_cache": 1, "local_cache_expected": 1.75, "bound": 2},
        "designs": [
            {
                "design": name,
                "requests": requests,
                "plans_computed": plans,
                "manifests_opened": 2 * plans,
                "entries_decoded": 8 * plans,
                "peak_response_bytes": 9_500,
                "server_bytes_held": 0,
                "note": note,
            }
            for name, requests, plans, note in zip(
                designs, (1, 3, 3, 3), (1, 3, 1.75, 1), (None, None, None, "Avro cannot seek"), strict=True
            )
        ],
        "limits": ["A task is taken to hold 3000 bytes."],
    }


def report_of(home: Path, dag_id: str) -> Report:
    run = sample.Sample(home, dag_id, "run", "2026-11-30T06:02:00+00:00")
    run.measured(sample.UPLOADS, 7, 2, 8)
    run.put("health", sample.UPLOADS, snapshot_id=7, data=sample.clustered_orders())
    run.put("planning", sample.UPLOADS, data=sample.planning(("everything", "size >= 0", 2, 2)))
    run.put("assignment", sample.UPLOADS, data=assignment())
    run.put("plan_tasks", sample.UPLOADS, data=plan_tasks())
    return build_report(run.folder)


@pytest.fixture
def weekly(tmp_path: Path) -> Report:
    return report_of(tmp_path, sample.WEEKLY)


@pytest.fixture
def what_if(tmp_path: Path) -> Report:
    return report_of(tmp_path, "planning_what_if")


def test_a_table_compares_both_assignments_the_bound_and_split_files_for_each_number_of_tasks(weekly: Report) -> None:
    shared = weekly.tables[0].simulations[0]
    assert [row[0] for row in shared.rows] == ["1", "4 (as configured)"]
    assert shared.rows[1][1:] == ["64 MB (2.56 × the mean)", "25 MB (1 × the mean)", "25 MB", "24 MB (1 × the mean)"]
    assert shared.rows[0][4] == "not measured"  # no split was simulated for one task
    assert "“everything” reads 8 files of 100 MB" in shared.text


def test_the_figure_of_tasks_shows_their_bytes_and_files(weekly: Report) -> None:
    figure = weekly.tables[0].figures.assignment
    assert figure is not None
    assert [bar.value for bar in figure.panels[0].bars] == [
        "64 MB · 4 files",
        "20 MB · 4 files",
        "9 MB · 4 files",
        "7 MB · 4 files",
    ]


def test_a_table_compares_the_four_ways_to_hand_out_a_plan(weekly: Report) -> None:
    handed_out = weekly.tables[0].simulations[1]
    assert [row[1:3] for row in handed_out.rows] == [["1", "1"], ["3", "3"], ["3", "1.75"], ["3", "1"]]
    assert handed_out.notes == ["Avro cannot seek"]


def test_homes_of_files_are_a_figure_and_text(weekly: Report) -> None:
    figure = weekly.tables[0].figures.affinity
    assert figure is not None
    shares, workers = figure.panels
    assert [(bar.label, bar.value) for bar in shares.bars] == [
        ("now, 4 workers", "52%"),
        ("one leaves: old homes", "41%"),
        ("one leaves: new homes", "57%"),
        ("one joins: old homes", "44%"),
        ("one joins: new homes", "48%"),
    ]
    assert [(bar.label, bar.value) for bar in workers.bars][:2] == [("worker-0", "0 tasks"), ("worker-1", "1 task")]
    assert f'id="{weekly.tables[0].anchor}-affinity"' in render_html(weekly)
    markdown = render_markdown(weekly)
    assert "52% of the bytes at home, 57% when a worker leaves, 48% when one joins" in markdown


def test_a_single_worker_or_no_work_has_no_figure_of_homes() -> None:
    assert affinity_figure({"preferred": {"http://worker-0/": 3}, "home": {"fraction": 1.0}}) is None
    assert affinity_figure({"preferred": {"http://a/": 0, "http://b/": 0}, "home": {"fraction": None}}) is None
    assert affinity_figure({}) is None


def test_only_the_most_preferred_of_many_workers_are_drawn() -> None:
    preferred = {f"http://worker-{number:02}/": number for number in range(30)}
    figure = affinity_figure({"preferred": preferred, "home": {"fraction": 0.5}})
    assert figure is not None
    assert [bar.label for bar in figure.panels[1].bars] == [f"worker-{number}" for number in range(22, 30)]
    assert "The 8 workers that most tasks prefer are shown." in figure.caption


@pytest.mark.parametrize("dag_id", [sample.WEEKLY, "planning_what_if"])
def test_every_form_of_the_report_says_what_the_simulations_cannot(tmp_path: Path, dag_id: str) -> None:
    report = report_of(tmp_path, dag_id)
    assert report.limits == [*LIMITS, "A task is taken to hold 3000 bytes."]
    html, markdown = (re.sub(r"[\\]|&#39;|'", "", text) for text in (render_html(report), render_markdown(report)))
    for limit in report.limits:
        assert limit.replace("'", "") in html
        assert limit.replace("'", "") in markdown


def test_the_markdown_of_a_what_if_run_has_every_row_and_note_of_the_page(what_if: Report) -> None:
    html, markdown = render_html(what_if), render_markdown(what_if)
    plain = markdown.replace("\\", "")
    for simulation in what_if.tables[0].simulations:
        for row in simulation.rows:
            assert all(cell in html and cell in plain for cell in row)
        assert all(note in plain for note in simulation.notes)
    assert "everything (heaviest), `size >= 0`: manifests 2 of 2, data files 36 of 1,512" in plain


def test_the_weekly_markdown_has_one_line_a_simulation_and_none_for_what_is_no_question(
    weekly: Report, tmp_path: Path
) -> None:
    assert render_markdown(weekly).count(f"`{sample.UPLOADS}`: 8 files over 4 tasks") == 1
    assert render_markdown(weekly).count("3 requests a scan") == 1
    run = sample.Sample(tmp_path / "one", sample.WEEKLY, "run", "2026-11-30T06:02:00+00:00")
    alone = assignment() | {"planned": {"files": 4, "bytes": 5}}  # on four tasks
    run.measured(sample.UPLOADS, 7, 2, 1)
    run.put("assignment", sample.UPLOADS, data=alone)
    run.put("plan_tasks", sample.UPLOADS, data=plan_tasks() | {"requests": 1})
    assert "handed out by a server" not in render_markdown(build_report(run.folder))


def test_no_work_and_a_damaged_result_are_left_out(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, sample.WEEKLY, "run", "2026-11-30T06:02:00+00:00")
    run.measured(sample.EMPTY, None, 0, 0)
    run.put("assignment", sample.EMPTY, data=assignment() | {"planned": {"files": 0, "bytes": 0}})
    run.put("plan_tasks", sample.EMPTY, data={"designs": "?", "tasks": 3})
    (table,) = build_report(run.folder).tables
    assert table.simulations == []
