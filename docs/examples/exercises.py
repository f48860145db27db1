"""Seven exercises on scan planning: builds small Iceberg tables with Spark and plans them with both planners.

``docs/exercises.md`` explains what happens and holds the results; this module makes the tables and the numbers::

    python docs/examples/exercises.py

runs all seven in a temporary folder and writes the results into the document.

Every count is the simulation's (from the recorded metadata) beside the measured one (from Iceberg's own scan report).
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planning_health.catalogs import TableName, load_pyiceberg_catalog, spark_session
from planning_health.errors import WorkFailedError
from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata, record_with_pyiceberg
from planning_health.metadata.planning_times import measure_planning
from planning_health.metadata.record_spark import load_java_table
from planning_health.planning.expressions import to_iceberg_json
from planning_health.planning.fewer_statistics import with_statistics
from planning_health.planning.predicates import columns_in
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.act import act
from planning_health.stages.measure import measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT: Final = Path(__file__).parents[1] / "exercises.md"
CATALOG: Final = "lake"
NAMESPACE: Final = "exercises"

_PLAIN_WRITES: Final = {
    "commit.manifest-merge.enabled": "false",  # one manifest a commit
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",  # one file for each partition of a commit
}
"""With these, every run writes the same files and manifests."""


@dataclass(frozen=True)
class Counters:
    """What one planner counted for one query."""

    manifests_scanned: int
    manifests_skipped: int
    files: int
    files_skipped: int
    delete_manifests_scanned: int
    deletes_indexed: int
    deletes_attached: int


_ICEBERGS_NAMES: Final = {
    "manifests_scanned": "scanned-data-manifests",
    "manifests_skipped": "skipped-data-manifests",
    "files": "result-data-files",
    "files_skipped": "skipped-data-files",
    "delete_manifests_scanned": "scanned-delete-manifests",
    "deletes_indexed": "indexed-delete-files",
    "deletes_attached": "result-delete-files",
}


@dataclass(frozen=True)
class Plan:
    """One query planned by both.

    Attributes:
        table: the table's name without catalog and namespace.
        where: the predicate in Spark SQL.
        simulated: counted by the simulation.
        measured: counted by Iceberg.
        median_ms: Iceberg's planning time, the median of three runs, in milliseconds.
    """

    table: str
    where: str
    simulated: Counters
    measured: Counters
    median_ms: float


@dataclass(frozen=True)
class Measured:
    """A table as it is at one moment: its plans and what its metadata weighs."""

    plans: list[Plan]
    metadata: PlanningMetadata

    @property
    def manifest_bytes(self) -> int:
        """Bytes of all manifests."""
        total: int = sum(self.metadata.manifests["length"].to_pylist())
        return total

    @property
    def manifests(self) -> int:
        """Number of manifests, data and delete manifests together."""
        count: int = self.metadata.manifests.num_rows
        return count


@dataclass(frozen=True)
class Results:
    """What the seven exercises found; a list of plans for each state of each table."""

    sales: Measured
    without_statistics: Measured
    predicted_without_statistics: list[Counters]
    fresh: Measured
    aged: Measured
    aged_lists: dict[str, list[Any]]
    rewritten: Measured
    rewritten_lists: dict[str, list[Any]]
    agents: dict[str, Measured]
    predicted_agents: dict[str, list[Counters]]
    trimmed_agents: dict[str, Measured]
    wide: Measured
    wide_findings: list[str]
    checked: Measured
    checked_findings: list[str]
    by_day: Measured
    by_customer: Measured
    clustered: Measured
    with_deletes: Measured
    compacted: Measured
    without_deletes: Measured

    @property
    def plans(self) -> list[Plan]:
        """All plans."""
        values = [getattr(self, field.name) for field in fields(self)]
        states = [value for value in values if isinstance(value, Measured)]
        states += [*self.agents.values(), *self.trimmed_agents.values()]
        return [plan for state in states for plan in state.plans]


def run(spark: SparkSession, settings: SettingsDocument) -> Results:
    """Builds the tables of all seven exercises in the namespace ``lake.exercises`` and plans their queries.

    Args:
        spark: a session with the catalog ``lake``.
        settings: settings that define the same catalog.
    """
    lake = _Lake(spark, settings)
    lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
    return Results(
        **_selectivities_and_statistics(lake),
        **_ageing(lake),
        **_prefixes(lake),
        **_operating_rule(lake),
        **_transforms(lake),
        **_merge_on_read(lake),
    )


class _Lake:
    """Creates tables, writes to them and plans queries on them."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument) -> None:
        self._spark, self._settings = spark, settings

    def sql(self, statement: str) -> None:
        self._spark.sql(statement)

    def create(self, name: str, columns: str, partitioning: str, **properties: str) -> None:
        """Create an empty table; the properties' dots are written as double underscores."""
        given = {key.replace("__", "."): value for key, value in properties.items()}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in (_PLAIN_WRITES | given).items())
        self.sql(
            f"CREATE TABLE {CATALOG}.{NAMESPACE}.{name} ({columns}) USING iceberg "
            f"PARTITIONED BY ({partitioning}) TBLPROPERTIES ({listed})"
        )

    def insert(self, name: str, columns: str, rows: int) -> None:
        """Append rows made from ``id``, 0 to rows − 1, in one commit."""
        self.sql(f"INSERT INTO {CATALOG}.{NAMESPACE}.{name} SELECT {columns} FROM range(0, {rows}, 1, 1)")

    def call(self, procedure: str, name: str, arguments: str = "") -> None:
        self.sql(f"CALL {CATALOG}.system.{procedure}(table => '{NAMESPACE}.{name}'{arguments})")

    def trim(self, name: str, mode: str) -> None:
        """Set the metrics mode of all columns, and trim what the manifests hold already to it.

        Raises:
            WorkFailedError: the trim was refused or failed.
        """
        table = TableName.parse(f"{CATALOG}.{NAMESPACE}.{name}")
        folder = RunFolder(self._settings.home, "exercises", f"{name} {mode}")
        request = MaintenanceRequest(actions=["set_properties", "trim_statistics"], metrics_default=mode, dry_run=False)
        measure(self._settings, folder, [table], spark=self._spark)
        done = act(self._settings, folder, table, request, self._spark)
        if done.status != "ok":
            raise WorkFailedError(str(done.reason))

    def plan(self, name: str, wheres: Sequence[str]) -> Measured:
        """Record the table and plan each predicate twice: simulated, and by Iceberg."""
        table = TableName.parse(f"{CATALOG}.{NAMESPACE}.{name}")
        queried = frozenset[str]().union(*map(columns_in, wheres))
        metadata = record_with_pyiceberg(load_pyiceberg_catalog(self._settings, CATALOG), table, queried=queried)
        planner = ScanPlanner(metadata)
        filters = [(where, to_iceberg_json(plan_where(planner, where).filter)) for where in wheres]
        times = measure_planning(self._spark, load_java_table(self._spark, table), filters)
        plans = [
            Plan(name, where, simulated, _from_iceberg(time.counters), time.median_ms)
            for where, simulated, time in zip(wheres, simulate(metadata, wheres), times, strict=True)
        ]
        return Measured(plans, metadata)


def simulate(metadata: PlanningMetadata, wheres: Iterable[str]) -> list[Counters]:
    """Plan predicates on a recorded picture, without the table."""
    planner = ScanPlanner(metadata)
    counted = []
    for where in wheres:
        report = plan_where(planner, where).report
        counted.append(
            Counters(
                report.scanned_data_manifests,
                report.skipped_data_manifests,
                report.result_data_files,
                report.skipped_data_files,
                report.scanned_delete_manifests,
                report.indexed_delete_files,
                report.result_delete_files,
            )
        )
    return counted


def _from_iceberg(counters: Mapping[str, int]) -> Counters:
    return Counters(**{ours: counters.get(theirs, 0) for ours, theirs in _ICEBERGS_NAMES.items()})


# Exercises 1 and 3: three selectivities, with and without column statistics

SELECTIVITIES: Final = (
    "true",
    "sold_at >= TIMESTAMP'2024-01-12' AND sold_at < TIMESTAMP'2024-01-13'",
    "sold_at >= TIMESTAMP'2024-01-12' AND sold_at < TIMESTAMP'2024-01-13' AND amount > 400",
    "amount > 400",
)


def _sales(lake: _Lake, name: str, **properties: str) -> None:
    """30 days of sales: six times five days, of each first the small amounts, then the large ones; 12 commits."""
    lake.create(name, "sale_id BIGINT, sold_at TIMESTAMP, country STRING, amount DOUBLE", "days(sold_at)", **properties)
    for commit in range(12):
        first_day, base = commit // 2 * 5, commit % 2 * 500
        lake.insert(
            name,
            f"{commit * 100} + id, TIMESTAMP'2024-01-01' + make_dt_interval(CAST({first_day} + id % 5 AS INT), 12), "
            f"element_at(array('DE', 'DK', 'US'), CAST(id % 3 AS INT) + 1), CAST({base} + id AS DOUBLE)",
            100,
        )


def _selectivities_and_statistics(lake: _Lake) -> dict[str, Any]:
    _sales(lake, "sales")
    _sales(lake, "sales_without_statistics", write__metadata__metrics__default="none")
    sales = lake.plan("sales", SELECTIVITIES)
    fewer = with_statistics(sales.metadata, {"amount": "none"}).metadata
    return {
        "sales": sales,
        "without_statistics": lake.plan("sales_without_statistics", SELECTIVITIES),
        "predicted_without_statistics": simulate(fewer, SELECTIVITIES),
    }


# Exercise 2: both lists of problematic manifests

AGED: Final = (
    "sold_at >= TIMESTAMP'2024-01-22' AND sold_at < TIMESTAMP'2024-01-23'",
    "sold_at >= TIMESTAMP'2024-01-06' AND sold_at < TIMESTAMP'2024-01-11'",
    "sold_at < TIMESTAMP'2024-01-04'",
)


def _ageing(lake: _Lake) -> dict[str, Any]:
    """Days are deleted, 40 days of late rows arrive in one commit, more days are deleted."""
    table = f"{CATALOG}.{NAMESPACE}.sales"
    fresh = lake.plan("sales", AGED)
    lake.sql(f"DELETE FROM {table} WHERE sold_at >= TIMESTAMP'2024-01-14' AND sold_at < TIMESTAMP'2024-01-16'")
    lake.insert(
        "sales",
        "10000 + id, TIMESTAMP'2023-12-22' + make_dt_interval(CAST(id % 40 AS INT), 18), 'DE', CAST(id AS DOUBLE)",
        400,
    )
    lake.sql(f"DELETE FROM {table} WHERE sold_at < TIMESTAMP'2024-01-04'")
    aged = lake.plan("sales", AGED)
    lake.call("rewrite_manifests", "sales")
    rewritten = lake.plan("sales", AGED)
    return {
        "fresh": fresh,
        "aged": aged,
        "aged_lists": analyse(aged.metadata, resolve_thresholds(None))["lists"],
        "rewritten": rewritten,
        "rewritten_lists": analyse(rewritten.metadata, resolve_thresholds(None))["lists"],
    }


# Exercise 4: STARTS WITH and the length of bounds

MODES: Final = ("truncate(4)", "truncate(16)", "full")
PREFIXES: Final = (
    "user_agent LIKE 'Opera%'",
    "user_agent LIKE 'Mozilla%'",
    "user_agent LIKE 'Mozilla/5.0 (Windows NT 10%'",
    "user_agent NOT LIKE 'Mozilla%'",
)
AGENTS: Final = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) build ",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) build ",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X) build ",
    "Mozilla/4.0 (compatible; MSIE 8.0) build ",
    "Mozibot/1.0 crawl ",
    "Mozify/2.3 crawl ",
    "Opera/9.80 (X11; Linux) build ",
    "curl/8.5.0 run ",
)


def _prefixes(lake: _Lake) -> dict[str, Any]:
    """Eight kinds of user agent, each in a file of its own, written with three lengths of bounds; then trimmed."""
    agents = {}
    listed = ", ".join(f"'{agent}'" for agent in AGENTS)
    for mode in MODES:
        name = "agents_" + re.sub(r"\W+", "_", mode).strip("_")
        lake.create(name, "kind INT, user_agent STRING", "kind", write__metadata__metrics__default=mode)
        kind = f"CAST(id % {len(AGENTS)} AS INT)"
        lake.insert(name, f"{kind}, concat(element_at(array({listed}), {kind} + 1), 100 + id)", 400)
        agents[mode] = lake.plan(name, PREFIXES)
    full = agents["full"].metadata
    trimmed = {}
    for mode in ("truncate(16)", "truncate(4)"):  # a trim only shortens
        lake.trim("agents_full", mode)
        trimmed[mode] = lake.plan("agents_full", PREFIXES)
    return {
        "agents": agents,
        "trimmed_agents": trimmed,
        "predicted_agents": {
            mode: simulate(with_statistics(full, {"user_agent": mode}).metadata, PREFIXES) for mode in MODES
        },
    }


# Exercise 5: the operating rule

WIDE: Final = ("event_date = DATE'2024-03-03'", "user_id = 1003", "user_id = 1003 AND payload_07 = 'p7'")
CHECKLIST: Final = {
    "write__metadata__metrics__default": "none",
    "write__metadata__metrics__column__user_id": "truncate(16)",
}


def _operating_rule(lake: _Lake) -> dict[str, Any]:
    """A table of 64 text columns that nobody filters by, created without and with the two properties."""
    payload = [f"payload_{number:02}" for number in range(64)]
    columns = "event_date DATE, user_id BIGINT, " + ", ".join(f"{name} STRING" for name in payload)
    values = ", ".join(f"concat(md5(concat(id, '{name}')), '{name}')" for name in payload)
    rows = f"DATE'2024-03-01' + CAST(id % 10 AS INT), 1000 + id % 10, {values}"
    choices: dict[str, dict[str, str]] = {"wide_events": {}, "wide_events_checked": CHECKLIST}
    states = {}
    for name, properties in choices.items():
        lake.create(name, columns, "days(event_date)", **properties)
        lake.insert(name, rows, 200)
        states[name] = lake.plan(name, WIDE)
    return {
        "wide": states["wide_events"],
        "wide_findings": _findings(states["wide_events"]),
        "checked": states["wide_events_checked"],
        "checked_findings": _findings(states["wide_events_checked"]),
    }


def _findings(state: Measured) -> list[str]:
    health = analyse(state.metadata, resolve_thresholds(None), filter_columns=["event_date", "user_id"])
    return sorted(finding["id"].partition(":")[0] for finding in health["findings"])


# Exercise 6: a transform that keeps order against one that does not

EQUALITIES: Final = tuple(f"customer_id = {(number * 2654435761) % 1_000_003}" for number in (3, 501, 999, 1503, 2001))
RANGES: Final = (
    "sold_at >= TIMESTAMP'2024-06-03' AND sold_at < TIMESTAMP'2024-06-04'",
    "sold_at >= TIMESTAMP'2024-06-10' AND sold_at < TIMESTAMP'2024-06-17'",
    "sold_at >= TIMESTAMP'2024-06-22'",
    "customer_id > 900000",
    "customer_id BETWEEN 1000 AND 2000",
)


def _transforms(lake: _Lake) -> dict[str, Any]:
    """The same 24 days of sales to about 2,400 customers, by day and in 16 buckets of the customer."""
    columns = "sale_id BIGINT, customer_id BIGINT, sold_at TIMESTAMP, amount DOUBLE"
    partitionings = {"sales_by_day": "days(sold_at)", "sales_by_customer": "bucket(16, customer_id)"}
    for name, partitioning in partitionings.items():
        lake.create(name, columns, partitioning)
        for commit in range(8):
            lake.insert(
                name,
                f"{commit * 600} + id, (({commit * 300} + id % 300) * 2654435761) % 1000003, "
                f"TIMESTAMP'2024-06-01' + make_dt_interval(CAST({commit * 3} + id % 3 AS INT), 9), CAST(id AS DOUBLE)",
                600,
            )
    queries = (*EQUALITIES, *RANGES)
    by_day, by_customer = (lake.plan(name, queries) for name in partitionings)
    target = by_customer.manifest_bytes // 8 + 1  # rewrite_manifests then makes eight
    lake.sql(
        f"ALTER TABLE {CATALOG}.{NAMESPACE}.sales_by_customer "
        f"SET TBLPROPERTIES ('commit.manifest.target-size-bytes' = '{target}')"
    )
    lake.call("rewrite_manifests", "sales_by_customer")
    return {"by_day": by_day, "by_customer": by_customer, "clustered": lake.plan("sales_by_customer", queries)}


# Exercise 7: merge-on-read before and after compaction

DELETED_FROM: Final = (
    "true",
    "ordered_on = DATE'2024-05-02'",
    "ordered_on = DATE'2024-05-02' AND order_id < 500",
)


def _merge_on_read(lake: _Lake) -> dict[str, Any]:
    """Four commits of four days, then six DELETEs, each of rows of every file; then compaction."""
    table = f"{CATALOG}.{NAMESPACE}.orders"
    lake.create(
        "orders",
        "order_id BIGINT, ordered_on DATE, amount DOUBLE",
        "days(ordered_on)",
        format_version="2",
        write__delete__mode="merge-on-read",
        write__delete__granularity="partition",
    )
    for commit in range(4):
        lake.insert("orders", f"{commit * 400} + id, DATE'2024-05-01' + CAST(id % 4 AS INT), CAST(id AS DOUBLE)", 400)
    for week in range(6):
        lake.sql(f"DELETE FROM {table} WHERE order_id % 40 >= {week * 4} AND order_id % 40 < {week * 4 + 4}")
    with_deletes = lake.plan("orders", DELETED_FROM)
    lake.call("rewrite_data_files", "orders", ", options => map('delete-file-threshold', '1')")
    compacted = lake.plan("orders", DELETED_FROM)
    lake.call(
        "rewrite_data_files", "orders", ", options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
    )
    return {
        "with_deletes": with_deletes,
        "compacted": compacted,
        "without_deletes": lake.plan("orders", DELETED_FROM),
    }


# The document

BLOCK: Final = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
ONCE: Final = "once-"
"""Blocks whose name begins so hold bytes or times, which differ a little from run to run."""

_COLUMNS: Final = (
    "query",
    "manifests scanned / skipped: simulated",
    "measured",
    "files read / skipped: simulated",
    "measured",
)


def render(results: Results) -> dict[str, str]:
    """The results as Markdown tables, by the name of their block in the document."""
    return {
        "selectivities": _plans_table(results.sales.plans[:3]),
        "ageing": _states_table({"fresh": results.fresh, "aged": results.aged, "rewritten": results.rewritten}),
        "lists": _lists_table(results.aged_lists),
        "statistics": _statistics_table(results),
        "once-statistics": _sizes_table(
            {"sales": results.sales, "sales_without_statistics": results.without_statistics}
        ),
        "prefixes": _prefixes_table(results),
        "rule": _states_table({"wide_events": results.wide, "wide_events_checked": results.checked}),
        "findings": _table(
            ("table", "findings of the weekly check"),
            [
                ("wide_events", ", ".join(results.wide_findings) or "none"),
                ("wide_events_checked", ", ".join(results.checked_findings) or "none"),
            ],
        ),
        "once-rule": _sizes_table({"wide_events": results.wide, "wide_events_checked": results.checked}),
        "transforms": _states_table(
            {
                "by day": results.by_day,
                "by bucket of the customer": results.by_customer,
                "by bucket, after rewrite_manifests": results.clustered,
            }
        ),
        "deletes": _deletes_table(_compaction(results)),
        "once-deletes": _times_table(_compaction(results)),
    }


def update(document: str, blocks: Mapping[str, str]) -> str:
    """Put rendered blocks between the document's markers.

    Raises:
        KeyError: the document has a marker for which there is no block.
    """
    return BLOCK.sub(lambda match: f"{match[1]}{blocks[match['name']]}\n{match[3]}", document)


def blocks_of(document: str) -> dict[str, str]:
    """The blocks that a document holds, by name."""
    return {match["name"]: match[0].split("\n", 1)[1].rsplit("\n", 1)[0] for match in BLOCK.finditer(document)}


def _compaction(results: Results) -> dict[str, Measured]:
    return {
        "after six DELETEs": results.with_deletes,
        "after rewrite_data_files": results.compacted,
        "and remove-dangling-deletes": results.without_deletes,
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _code(where: str) -> str:
    return "no predicate" if where == "true" else f"`{where}`"


def _pruned(plan: Plan) -> list[str]:
    sides = (plan.simulated, plan.measured)
    manifests = [f"{side.manifests_scanned} / {side.manifests_skipped}" for side in sides]
    return manifests + [f"{side.files} / {side.files_skipped}" for side in sides]


def _plans_table(plans: Iterable[Plan]) -> str:
    return _table(_COLUMNS, [[_code(plan.where), *_pruned(plan)] for plan in plans])


def _states_table(states: Mapping[str, Measured]) -> str:
    """The same queries on several states or tables, query by query."""
    by_query = zip(*(state.plans for state in states.values()), strict=True)
    rows = [
        [_code(plan.where), name, *_pruned(plan)]
        for plans in by_query
        for name, plan in zip(states, plans, strict=True)
    ]
    return _table((_COLUMNS[0], "table", *_COLUMNS[1:]), rows)


def _lists_table(lists: Mapping[str, list[Any]]) -> str:
    listed = {item["path"]: item for name in ("by_deleted_ratio", "by_partition_range") for item in lists[name]}
    rows = []
    for path, item in listed.items():
        days = item["ranges"][0]
        found = [
            name for name in ("by_deleted_ratio", "by_partition_range") if path in {i["path"] for i in lists[name]}
        ]
        rows.append(
            [
                f"{days['lower_display']} to {days['upper_display']}",
                f"{item['entries'] - item['live_entries']} of {item['entries']} ({item['deleted_ratio']:.0%})",
                f"{item['range_days']:.0f} days",
                "both" if len(found) == 2 else {"by_deleted_ratio": "deleted", "by_partition_range": "wide"}[found[0]],
            ]
        )
    return _table(("manifest of the days", "entries deleted", "range", "list"), sorted(rows))


def _statistics_table(results: Results) -> str:
    rows = []
    for with_, without, predicted in zip(
        results.sales.plans, results.without_statistics.plans, results.predicted_without_statistics, strict=True
    ):
        rows.append([_code(with_.where), "sales", *_pruned(with_), ""])
        what_if = f"{predicted.files} / {predicted.files_skipped}"
        rows.append([_code(without.where), "sales_without_statistics", *_pruned(without), what_if])
    return _table((_COLUMNS[0], "table", *_COLUMNS[1:], "predicted from `sales`"), rows)


def _prefixes_table(results: Results) -> str:
    rows = []
    for index, where in enumerate(PREFIXES):
        for mode in MODES:
            plan, predicted = results.agents[mode].plans[index], results.predicted_agents[mode][index]
            files = [f"{side.files} / {side.files_skipped}" for side in (plan.simulated, plan.measured, predicted)]
            trimmed = results.trimmed_agents.get(mode)
            then = trimmed.plans[index].measured if trimmed else None
            files.append(f"{then.files} / {then.files_skipped}" if then else "")
            rows.append([_code(where), mode, *files])
    head = (*_COLUMNS[:1], "metrics mode", *_COLUMNS[3:], "predicted from `full`", "`full`, trimmed: measured")
    return _table(head, rows)


def _deletes_table(states: Mapping[str, Measured]) -> str:
    rows = []
    for plans in zip(*(state.plans for state in states.values()), strict=True):
        for name, plan in zip(states, plans, strict=True):
            sides = (plan.simulated, plan.measured)
            numbers = [
                [side.files for side in sides],
                [side.delete_manifests_scanned for side in sides],
                [side.deletes_attached for side in sides],
            ]
            rows.append([_code(plan.where), name, *(f"{pair[0]} and {pair[1]}" for pair in numbers)])
    return _table(
        ("query", "state", "data files: simulated and measured", "delete manifests read", "delete files attached"), rows
    )


def _sizes_table(states: Mapping[str, Measured]) -> str:
    rows = [
        [name, state.manifests, f"{state.manifest_bytes:,}", f"{_statistics_bytes(state):,}"]
        for name, state in states.items()
    ]
    return _table(("table", "manifests", "bytes of all manifests", "of which statistics, before compression"), rows)


def _statistics_bytes(state: Measured) -> int:
    return sum(item["bytes"] for row in state.metadata.manifests["statistics_bytes"].to_pylist() for item in row)


def _times_table(states: Mapping[str, Measured]) -> str:
    rows = [
        [name, *(f"{plan.median_ms:.1f} ms" for plan in state.plans), f"{state.manifest_bytes:,}"]
        for name, state in states.items()
    ]
    return _table(("state", *(_code(where) for where in DELETED_FROM), "bytes of all manifests"), rows)


def main() -> None:
    """Runs the exercises on tables in a temporary folder and writes their results into the document."""
    with tempfile.TemporaryDirectory() as home:
        properties = {"type": "jdbc", "uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/warehouse"}
        packages = [*SettingsDocument.model_fields["spark"].default.packages, "org.xerial:sqlite-jdbc:3.50.3.0"]
        settings = SettingsDocument.model_validate(
            {"home": home, "catalogs": {CATALOG: {"properties": properties}}, "spark": {"packages": packages}}
        )
        spark = spark_session(settings, "exercises")
        try:
            results = run(spark, settings)
        finally:
            spark.stop()
    DOCUMENT.write_text(update(DOCUMENT.read_text(), render(results)))
    different = [plan for plan in results.plans if plan.simulated != plan.measured]
    sys.exit(f"simulated and measured differ: {different}" if different else 0)


if __name__ == "__main__":
    main()
