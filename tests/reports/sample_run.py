"""Result files of two weekly runs and a maintenance run between them, as the other parts write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument

SETTINGS = SettingsDocument.model_validate({"catalogs": {"lake": {"properties": {"type": "sql"}}}})
WEEKLY = "planning_health_weekly"
LAST_WEEK = "scheduled__2026-11-23T06:00:00+00:00"
THIS_WEEK = "scheduled__2026-11-30T06:00:00+00:00"
REPAIR = "manual__2026-11-26T09:30:00+00:00"

ORDERS = TableName("lake", ("sales",), "orders")
CUSTOMERS = TableName("lake", ("sales",), "customers")
READINGS = TableName("lake", ("ops",), "sensor_readings")
UPLOADS = TableName("lake", ("ops",), "uploads")
TOTALS = TableName("lake", ("sales",), "daily_totals")
EMPTY = TableName("lake", ("sales",), "wishlist")
BROKEN = TableName("lake", ("broken",), "lost_manifest")
BROKEN_REASON = "manifest s3://lake/broken/lost_manifest/metadata/8c1f-m1.avro does not exist"


@dataclass(frozen=True)
class Sample:
    """Writes result files of one run at a fixed time."""

    home: Path
    dag_id: str
    run_id: str
    at: str

    @property
    def folder(self) -> RunFolder:
        return RunFolder(str(self.home), self.dag_id, self.run_id)

    def put(self, kind: str, table: TableName | None = None, **fields: Any) -> None:
        """Writes a result file whose ``created_at`` is the sample's."""
        envelope = self.folder.write_result(kind, table=table, **fields)
        path = self.home / envelope.path
        path.write_text(json.dumps(json.loads(path.read_text()) | {"created_at": self.at}))

    def measured(self, table: TableName, snapshot_id: int | None, manifests: int, data_files: int) -> None:
        self.put(
            "measurement",
            table,
            table_uuid="7d6e0b8a-52a4-4c4a-9a07-0f2f2a3c9f10",
            snapshot_id=snapshot_id,
            headline={"manifests": manifests, "data_file_entries": data_files, "delete_file_entries": 0},
            data={"recorder": "spark", "format_version": 2, "measured_at": self.at},
        )


def day(number: int) -> str:
    """A number of days since 1970 as a date."""
    return (date(1970, 1, 1) + timedelta(days=number)).isoformat()


FIRST_DAY = (date(2026, 7, 1) - date(1970, 1, 1)).days


def manifest(ordinal: int, lower: int, upper: int, **fields: Any) -> dict[str, Any]:
    """A row of ``health.manifests`` on the field ``ordered_on_day``."""
    return {
        "ordinal": ordinal,
        "path": f"s3://lake/sales/orders/metadata/{ordinal:04x}9d2e-77c1-4b5e-a01b-6c33{ordinal:08x}-m0.avro",
        "content": 0,
        "spec_id": 0,
        "length": 9_400,
        "entries": 36,
        "live_entries": 36,
        "deleted_ratio": 0.0,
        "ranges": [
            {
                "field": "ordered_on_day",
                "transform": "day",
                "unit": "days",
                "lower": lower,
                "upper": upper,
                "lower_display": day(lower),
                "upper_display": day(upper),
                "range": upper - lower,
                "range_days": upper - lower,
            }
        ],
    } | fields


def overlap(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """The overlap depth of ``ordered_on_day`` over the days that the manifests cover."""
    ranges = [(row["ranges"][0]["lower"], row["ranges"][0]["upper"]) for row in manifests]
    days = range(min(low for low, _ in ranges), max(high for _, high in ranges) + 1)
    depths = [(value, sum(low <= value <= high for low, high in ranges)) for value in days]
    series = [{"value": value, "display": day(value), "depth": depth} for value, depth in depths if depth]
    mean = sum(item["depth"] for item in series) / len(series)
    ordered = sorted(item["depth"] for item in series)
    return {
        "spec_id": 0,
        "field": "ordered_on_day",
        "transform": "day",
        "values": len(series),
        "mean": mean,
        "p95": ordered[int(len(ordered) * 0.95)],
        "worst": ordered[-1],
        "clustering_ratio": 1 - (mean - 1) / max(len(manifests) - 1, 1),
        "series": series,
    }


def signal(name: str, value: float | None, unit: str = "", level: str = "ok", **scope: str) -> dict[str, Any]:
    return {"scope": "table", "scope_key": "", "signal": name, "value": value, "unit": unit, "level": level} | scope


def statistics(*columns: tuple[str, int]) -> list[dict[str, Any]]:
    total = sum(size for _, size in columns)
    return [
        {"field_id": number, "column": name, "bytes": size, "share": size / total}
        for number, (name, size) in enumerate(columns, start=1)
    ]


WIDE_FINDING = {
    "id": "wide_manifests:0.ordered_on_day",
    "title": "40 of 42 manifests are wide in ordered_on_day",
    "level": "critical",
    "signal": "partition_range_days",
    "scope_key": "0.ordered_on_day",
    "value": 88,
    "unit": "days",
    "threshold": 90,
    "evidence": "Clustered, each manifest would cover about 3.1 days. Widest: 00019d2e-m0.avro (88 days).",
    "explanation": "A manifest is skipped only when the query's dates lie outside its range of ordered_on_day.",
    "recommendation": "Rewrite the manifests of spec 0 sorted by ordered_on_day.",
}


def wide_orders() -> dict[str, Any]:
    """The orders as they were: late data in every commit makes every manifest wide."""
    rows = [
        manifest(commit, FIRST_DAY + commit + (commit * 7) % 5, FIRST_DAY + 90 + commit, deleted_ratio=0.0)
        for commit in range(42)
    ]
    return health_of(rows, state="critical", findings=[WIDE_FINDING])


def clustered_orders() -> dict[str, Any]:
    """The orders after their manifests were rewritten: each covers a stretch of its own."""
    rows = [manifest(n, FIRST_DAY + 22 * n, FIRST_DAY + 22 * (n + 1) - 1, entries=252, length=61_000) for n in range(6)]
    return health_of(rows, state="ok", findings=[])


def health_of(rows: list[dict[str, Any]], *, state: str, findings: list[dict[str, Any]]) -> dict[str, Any]:
    widest = sorted(rows, key=lambda row: -row["ranges"][0]["range_days"])[:5] if state != "ok" else []
    return {
        "state": state,
        "signals": [
            signal("manifests", len(rows), "manifests"),
            signal("manifest_bytes", sum(row["length"] for row in rows), "bytes"),
            signal("data_files", sum(row["live_entries"] for row in rows), "files"),
            signal("delete_files", 0, "files"),
            signal("clustering_ratio", overlap(rows)["clustering_ratio"], scope="field", scope_key="0.ordered_on_day"),
            signal("partition_range_days", 88, "days", state, scope="field", scope_key="0.ordered_on_day"),
        ],
        "manifests": rows,
        "lists": {
            "by_deleted_ratio": [],
            "by_partition_range": [row | {"range_days": row["ranges"][0]["range_days"]} for row in widest],
            "in_both": [],
        },
        "overlap": [overlap(rows)],
        "statistics_bytes": statistics(("order_id", 41_000), ("ordered_on", 22_000), ("status", 9_000)),
        "findings": findings,
        "steps": [
            {"step": 1, "title": "How many manifests are there?", "level": "ok", "evidence": f"{len(rows)} manifests"},
            {"step": 2, "title": "How wide are they?", "level": state, "evidence": "88 days at most"},
        ],
    }


def planning(*queries: tuple[str, str, int, int]) -> dict[str, Any]:
    return {
        "predicates": [
            {
                "name": name,
                "where": where,
                "weight": 10,
                "not_pushed_down": [],
                "data_manifests": {"total": total, "scanned": scanned, "skipped": total - scanned},
                "delete_manifests": {"total": 0, "scanned": 0, "skipped": 0},
                "data_files": {"total": 1512, "result": 36, "skipped": 1476},
                "tasks": 4,
            }
            for name, where, scanned, total in queries
        ],
        "heaviest": queries[0][0],
    }


def assignment(default: list[int], greedy: list[int]) -> dict[str, Any]:
    return {"comparisons": [{"tasks": len(default), "default": {"loads": default}, "greedy": {"loads": greedy}}]}


def plan_tasks(requests: int) -> dict[str, Any]:
    return {
        "requests": requests,
        "plans_by_replicas": [
            {"replicas": r, "no_cache": requests, "local_cache_expected": r * (1 - (1 - 1 / r) ** requests)}
            for r in range(1, 11)
        ],
    }


PREDICTED = {
    "manifests_before": 42,
    "manifests_after": 6,
    "metadata_bytes_before": 394_800,
    "metadata_bytes_after": 352_000,
    "overlap": [{"spec_id": 0, "field": "ordered_on_day", "mean_before": 28.9, "mean_after": 1.0}],
    "queries": [
        {
            "name": "one_day",
            "where": "ordered_on = DATE'2026-09-20'",
            "manifests_before": 31,
            "manifests_after": 1,
            "metadata_bytes_before": 291_400,
            "metadata_bytes_after": 58_000,
        }
    ],
}


def proposal(table: TableName) -> dict[str, Any]:
    return {
        "proposals": [
            {
                "id": "rewrite_manifests_spec_0",
                "action": "rewrite_manifests",
                "title": "Rewrite the manifests of spec 0",
                "why": "spec 0: 42 → 6 manifests, planning cost of a lookup × 0.05",
                "spec_id": 0,
                "commands": [f"CALL `lake`.system.rewrite_manifests(table => '{table.sql}', spec_id => 0)"],
                "undo": [f"CALL `lake`.system.rollback_to_snapshot(table => '{table.sql}', snapshot_id => 41)"],
                "predicted": PREDICTED,
                "risk": "Metadata only: no data file is touched.",
                "params": {
                    "actions": ["rewrite_manifests"],
                    "spec_id": 0,
                    "sort_by": [],
                    "target_manifest_bytes": None,
                },
            }
        ],
        "no_op_reason": None,
    }


def action(
    state: str = "done", *, dry_run: bool = False, started_at: str = "2026-11-26T09:31:00+00:00"
) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "state": state,
        "steps": [
            {"step": "guard", "status": "done", "reason": None, "started_at": started_at, "seconds": 0.4},
            {"step": "rewrite_manifests", "status": "done", "reason": None, "started_at": started_at, "seconds": 3.2},
            {"step": "verify", "status": "done" if state == "done" else "failed", "reason": None, "seconds": 1.1},
        ],
        "predicted": PREDICTED,
        "before": layout(42, 394_800, 28.9) | opened(31, 291_400),
        "after": layout(6, 366_000, 1.0) | opened(1, 60_000),
        "rollback": "CALL `lake`.system.rollback_to_snapshot(table => '`lake`.`sales`.`orders`', snapshot_id => 41)",
    }


def opened(manifests: int, size: int) -> dict[str, Any]:
    """What the one query of the orders opens."""
    where = "ordered_on = DATE'2026-09-20'"
    return {"queries": [{"name": "one_day", "where": where, "manifests": manifests, "metadata_bytes": size}]}


def layout(manifests: int, size: int, mean: float) -> dict[str, Any]:
    return {
        "snapshot_id": 41,
        "manifests": manifests,
        "data_manifests": manifests,
        "delete_manifests": 0,
        "metadata_bytes": size,
        "overlap": [{"spec_id": 0, "field": "ordered_on_day", "values": 130, "mean": mean, "worst": round(mean)}],
    }


def deleted_customers() -> dict[str, Any]:
    rows = [
        manifest(n, FIRST_DAY + 9 * n, FIRST_DAY + 9 * n + 12, deleted_ratio=round(0.8 - 0.1 * n, 2), spec_id=0)
        for n in range(8)
    ]
    finding = {
        "id": "high_deleted_ratio",
        "title": "Up to 80 % of a manifest's entries are removed files",
        "level": "critical",
        "signal": "deleted_ratio",
        "scope_key": "",
        "value": 0.8,
        "unit": "",
        "threshold": 0.6,
        "evidence": "00009d2e-m0.avro (80 % of 36 entries); 00019d2e-m0.avro (70 % of 36 entries)",
        "explanation": "Removed files are read and thrown away by each planning.",
        "recommendation": "Rewrite the manifests: that drops the entries of removed files.",
    }
    dangling = finding | {
        "id": "dangling_deletes",
        "title": "14 delete files apply to nothing",
        "level": "warning",
        "signal": "dangling_delete_files",
        "evidence": "14 of 32 delete files are older than every data file of their partition.",
        "recommendation": "Run rewrite_position_delete_files.",
    }
    health = health_of(rows, state="critical", findings=[dangling, finding])
    worst = sorted(rows, key=lambda row: -row["deleted_ratio"])[:5]
    health["lists"] = {"by_deleted_ratio": worst, "by_partition_range": [], "in_both": []}
    return health


def wide_readings() -> dict[str, Any]:
    rows = [manifest(n, FIRST_DAY + 10 * n, FIRST_DAY + 10 * n + 9, length=84_000) for n in range(12)]
    finding = {
        "id": "heavy_statistics",
        "title": "Statistics of 94 columns take 4,120 bytes a file",
        "level": "warning",
        "signal": "statistics_bytes_per_file",
        "evidence": "93 % of the uncompressed metadata.",
        "recommendation": "Keep statistics of the columns that queries filter by.",
    }
    health = health_of(rows, state="warning", findings=[finding])
    health["statistics_bytes"] = statistics(*((f"reading_{n:02}", 14_000 - 100 * n) for n in range(94)))
    return health


def last_week(home: Path) -> Sample:
    """The run before: the orders' manifests are wide."""
    run = Sample(home, WEEKLY, LAST_WEEK, "2026-11-23T06:02:00+00:00")
    run.put("measure", data={"tables": [str(ORDERS), str(TOTALS)], "failed": {}})
    run.measured(ORDERS, 41, 42, 1512)
    run.put("health", ORDERS, snapshot_id=41, data=wide_orders())
    run.put("proposal", ORDERS, snapshot_id=41, data=proposal(ORDERS))
    run.measured(TOTALS, 7, 6, 1512)
    run.put("health", TOTALS, snapshot_id=7, data=clustered_orders())
    return run


def repair(home: Path, **fields: Any) -> Sample:
    """The maintenance run between the two."""
    run = Sample(home, "table_maintenance", REPAIR, "2026-11-26T09:32:00+00:00")
    run.put("action", ORDERS, snapshot_id=42, data=action(**fields))
    return run


def rollback(run: Sample, **fields: Any) -> None:
    """What undid the maintenance run, in its own folder."""
    later = Sample(run.home, run.dag_id, run.run_id, "2026-11-27T08:00:00+00:00")
    undone = {"snapshot_id": 41, "properties": [{"key": "commit.manifest.target-size-bytes"}]}
    later.put("rollback", ORDERS, snapshot_id=41, data=undone, **fields)


def dry_run(home: Path) -> Sample:
    """A maintenance run that shows its changes only."""
    run = Sample(home, "table_maintenance", "manual__2026-11-27T09:00:00+00:00", "2026-11-27T09:01:00+00:00")
    run.measured(ORDERS, 41, 42, 1512)
    run.put("proposal", ORDERS, snapshot_id=41, data=proposal(ORDERS) | {"request": {"dry_run": True}})
    return run


def this_week(home: Path) -> Sample:
    """The run that is reported on."""
    run = Sample(home, WEEKLY, THIS_WEEK, "2026-11-30T06:02:00+00:00")
    tables = [ORDERS, CUSTOMERS, READINGS, UPLOADS, TOTALS, EMPTY, BROKEN]
    run.put("measure", data={"tables": [str(table) for table in tables], "failed": {str(BROKEN): BROKEN_REASON}})
    run.put("measurement", BROKEN, status="failed", reason=BROKEN_REASON)
    run.put("health", BROKEN, status="skipped", reason=f"not measured: {BROKEN_REASON}")
    run.measured(ORDERS, 42, 6, 1512)
    run.put("health", ORDERS, snapshot_id=42, data=clustered_orders())
    run.put("planning", ORDERS, data=planning(("one_day", "ordered_on = DATE'2026-09-20'", 1, 6)))
    run.put("assignment", ORDERS, data=assignment([64_000_000, 12_000_000, 9_000_000, 7_000_000], [24_000_000] * 4))
    run.put("plan_tasks", ORDERS, data=plan_tasks(1))
    run.put("proposal", ORDERS, data={"proposals": [], "no_op_reason": "spec 0: nothing would improve"})
    run.measured(CUSTOMERS, 90, 8, 288)
    run.put("health", CUSTOMERS, snapshot_id=90, data=deleted_customers())
    run.put("proposal", CUSTOMERS, data=proposal(CUSTOMERS))
    run.measured(READINGS, 77, 12, 432)
    run.put("health", READINGS, snapshot_id=77, data=wide_readings())
    run.measured(UPLOADS, 12, 6, 1512)
    run.put("health", UPLOADS, snapshot_id=12, data=clustered_orders())
    run.put("plan_tasks", UPLOADS, data=plan_tasks(11))
    run.measured(TOTALS, 8, 6, 1512)
    run.put("health", TOTALS, snapshot_id=8, data=clustered_orders())
    run.measured(EMPTY, None, 0, 0)
    run.put("health", EMPTY, data={"state": "ok", "signals": [signal("manifests", 0, "manifests")], "findings": []})
    return run
