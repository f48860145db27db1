"""Predictions beside what really happened: copies of the demonstration lake's tables are rewritten by Spark.

Run it with ``python -m benchmarks.prediction_against_fact``; it writes ``docs/prediction-against-fact.md``. Each table
is registered a second time, so that the copy can be rewritten while the table stays as it was.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.planning.lake import Shape, ensure_table
from benchmarks.planning.lake import settings as benchmark_settings
from benchmarks.planning.predicates import predicates as benchmark_predicates

from planning_health.catalogs import load_pyiceberg_catalog, spark_session
from planning_health.demo.lake import build_lake
from planning_health.identifiers import TableName, sql_string
from planning_health.maintenance.prediction import predict_rewrite_manifests, target_size
from planning_health.maintenance.proposals import used_specs
from planning_health.maintenance.rewrite import even_cuts
from planning_health.metadata import PlanningMetadata, record_with_pyiceberg
from planning_health.planning.predicates import columns_in
from planning_health.planning.respec import with_spec
from planning_health.planning.spec_text import parse_spec
from planning_health.planning.what_if import Reads, compare
from planning_health.settings import SettingsDocument
from planning_health.settings.load import DEMO_SETTINGS, load_settings
from planning_health.stages.queries import configured_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INTRODUCTION: Final = """# Predictions against facts

Made by `python -m benchmarks.prediction_against_fact`: copies of the demonstration lake's tables and of the planning
benchmark's table are recorded, their change is predicted from the recording alone, Spark makes the change, and the
table is recorded again. Each cell is **before / predicted / real**; manifests are data and delete manifests together.

- Metadata bytes are predicted by encoding real entries again in their new order (`metadata/manifest_encoding.py`): all
  of them in small tables, a sample of 4 MiB in large ones.
- Maintenance has Spark cut the sorted entries by all of them (`maintenance/rewrite.py`, `even_cuts`), so that the new
  manifests are even, and where the cuts fall is known beforehand. Called by hand, `rewrite_manifests` cuts by a sample:
  Spark draws some 300 entries for each new manifest (`spark.sql.execution.rangeExchange.sampleSizePerPartition`, 100 by
  default, times three), so that a manifest's size has a standard deviation of about 1/√300, 6 %. Such a rewrite of the
  benchmark's table is shown as well: all manifests together are as predicted, a single one need not be, and a predicate
  next to a cut may open one manifest more or fewer, which is twice or half the bytes where it opens one or two. Which
  entries are drawn depends on numbers that only the Spark session knows: that rewrite cannot be predicted more closely.
- The model of how rows spread over the files of another spec is stated in `planning/respec.py` and
  `planning/drawn_bounds.py`. Its metadata bytes take new entries for as large as today's, so that they are rough where
  the new files have few rows; no tolerance is set for them. The benchmark's table has no data that could be rewritten.
- The tolerances: after a rewrite of manifests 1 or 5 % of the manifests, 5 % of the metadata bytes; with another spec 1
  or 10 % of the manifests, 20 % of the files. `tests/integration/test_prediction_against_fact.py` holds them.
"""

MOST_ROWS: Final = 10
"""Predicates of a change that the page lists; the others are summed up."""

NAMESPACE: Final = "prediction_against_fact"

SPECS: Final = {
    "lake.sales.orders": ["months(ordered_on)", "days(ordered_on), bucket(4, customer_id)"],
    "lake.ops.tickets": ["days(opened_on)"],
    "lake.sales.customers": ["months(joined_on)"],
    "lake.ops.page_views": ["bucket(8, visitor_id)", "days(viewed_at)"],
    "lake.sales.invoices": ["months(issued_on)"],
    "lake.ops.uploads": ["bucket(8, upload_id)"],
}
"""The other partition specs that each table is given."""

SORTED: Final = {"lake.sales.invoices": [["country"]]}
"""Rewrites that cluster by other fields than all of the spec."""

MORE_PREDICATES: Final = {
    "lake.sales.orders": ["ordered_on BETWEEN DATE'2026-03-10' AND DATE'2026-03-20'", "order_id = 4711"],
    "lake.ops.tickets": ["opened_on = DATE'2026-02-14'", "team = 'network'"],
    "lake.sales.customers": ["joined_on >= DATE'2027-06-01'", "customer_id IN (5, 77, 901)"],
    "lake.ops.page_views": ["visitor_id = 123", "viewed_at >= TIMESTAMP'2026-06-15 00:00:00+00:00'"],
    "lake.sales.invoices": ["issued_on = DATE'2026-03-15'", "invoice_id < 200"],
    "lake.ops.uploads": ["upload_id = 77000", "upload_id > 110000", "tenant = 'tenant-07'"],
}
"""Predicates beside the table's configured queries."""


@dataclass(frozen=True)
class Fact:
    """What one predicate reads: before a change, as predicted, and after it."""

    where: str
    before: Reads
    predicted: Reads
    real: Reads


@dataclass(frozen=True)
class Change:
    """One change of one table."""

    table: str
    what: str
    facts: list[Fact]


States = tuple[PlanningMetadata, PlanningMetadata, PlanningMetadata]
"""A table before a change, as predicted, and after it."""


class Copies:
    """Second registrations of tables, whose metadata may be rewritten while the tables stay as they are."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument, catalog: str = "lake") -> None:
        self._spark, self._catalog = spark, catalog
        self._pyiceberg = load_pyiceberg_catalog(settings, catalog)
        self._numbers = itertools.count(1)
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.{NAMESPACE}")

    def of(self, table: TableName) -> TableName:
        """Registers a table's current state a second time."""
        location = self._pyiceberg.load_table(table.identifier).metadata_location
        name = TableName(self._catalog, (NAMESPACE,), f"{table.name}_{next(self._numbers)}")
        self._spark.sql(f"DROP TABLE IF EXISTS {name.sql}")
        self._call("register_table", name, f"metadata_file => {sql_string(location)}")
        return name

    def rewrite_manifests(
        self, table: TableName, wheres: Sequence[str], sort_by: Sequence[str] = (), *, by_hand: bool = False
    ) -> Change:
        """Rewrites the manifests of each of a table's specs, as maintenance does, and tells what was predicted.

        Args:
            table: the table; a copy of it is rewritten.
            wheres: the predicates.
            sort_by: partition fields to cluster by, all of them when empty.
            by_hand: leave it to Spark's sample where manifests are cut, as a bare CALL does.
        """
        copy = self.of(table)
        before = self._record(copy, wheres)
        predicted = before
        order = f", sort_by => array({', '.join(map(sql_string, sort_by))})" if sort_by else ""
        for spec_id in used_specs(before):
            predicted = predict_rewrite_manifests(
                predicted, spec_id, target_size(before.info.properties), sort_by
            ).metadata
            with nullcontext() if by_hand else even_cuts(self._spark):
                self._call("rewrite_manifests", copy, f"spec_id => {spec_id}, use_caching => false{order}")
        what = f"rewrite_manifests, sorted by {', '.join(sort_by)}" if sort_by else "rewrite_manifests"
        what += ", called by hand" if by_hand else ""
        return _change(table, what, (before, predicted, self._record(copy, wheres)), wheres)

    def partition_otherwise(self, table: TableName, wheres: Sequence[str], spec: str) -> Change:
        """Gives a table another partition spec, rewrites data and manifests, and tells what was predicted."""
        copy, fields = self.of(table), parse_spec(spec)
        columns = [column for column, _ in fields]
        before = self._record(copy, wheres, columns)
        predicted = with_spec(before, fields)
        for field in before.info.specs[before.info.default_spec_id].fields:
            self._spark.sql(f"ALTER TABLE {copy.sql} DROP PARTITION FIELD `{field.name}`")
        for added in re.split(r",\s*(?![^(]*\))", spec):
            self._spark.sql(f"ALTER TABLE {copy.sql} ADD PARTITION FIELD {added}")
        options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        self._call("rewrite_data_files", copy, f"options => {options}")
        self._call("rewrite_manifests", copy, "use_caching => false")
        return _change(table, spec, (before, predicted, self._record(copy, wheres, columns)), wheres)

    def _record(self, table: TableName, wheres: Sequence[str], columns: Sequence[str] = ()) -> PlanningMetadata:
        queried = frozenset(columns).union(*(columns_in(where) for where in wheres))
        return record_with_pyiceberg(self._pyiceberg, table, queried=queried)

    def _call(self, procedure: str, table: TableName, arguments: str) -> None:
        self._spark.sql(f"CALL {self._catalog}.system.{procedure}(table => {_text(table)}, {arguments})")


def _text(table: TableName) -> str:
    return sql_string(".".join(f"`{part}`" for part in table.identifier))


def _change(table: TableName, what: str, states: States, wheres: Sequence[str]) -> Change:
    before, predicted, real = states
    facts = [
        Fact(expected.where, expected.before, expected.after, fact.after)
        for expected, fact in zip(compare(before, predicted, wheres), compare(before, real, wheres), strict=True)
    ]
    return Change(str(table), what, facts)


def predicates(settings: SettingsDocument, table: str) -> list[str]:
    """The predicates of one of the demonstration lake's tables: its configured queries and some more."""
    return [query.where for query in configured_queries(settings, TableName.parse(table))] + MORE_PREDICATES[table]


def off(predicted: int, real: int) -> float:
    """How far a prediction is from the fact, as a share of it."""
    return abs(predicted - real) / real if real else float(predicted != real)


def document(changes: Sequence[Change]) -> str:
    """The comparison as a page of Markdown."""
    by_hand = [change for change in changes if change.what.endswith("by hand")]
    rewrites = [change for change in changes if change.what.startswith("rewrite_manifests") and change not in by_hand]
    others = [change for change in changes if change not in (*rewrites, *by_hand)]
    return "\n".join(
        [
            _INTRODUCTION,
            "| worst of all predicates | manifests | data files | metadata bytes |",
            "|---|---:|---:|---:|",
            f"| `rewrite_manifests` as maintenance runs it | {_worst(rewrites)} |",
            f"| `rewrite_manifests` called by hand | {_worst(by_hand)} |",
            f"| another partition spec | {_worst(others)} |\n",
            "## After `rewrite_manifests`\n",
            *(line for change in (*rewrites, *by_hand) for line in _table(change)),
            "## After a change of the partition spec, all data rewritten\n",
            *(line for change in others for line in _table(change)),
        ]
    )


def _worst(changes: Sequence[Change]) -> str:
    facts = [fact for change in changes for fact in change.facts]
    manifests = max((abs(fact.predicted.manifests - fact.real.manifests) for fact in facts), default=0)
    files = max((off(fact.predicted.data_files, fact.real.data_files) for fact in facts), default=0)
    size = max((off(fact.predicted.metadata_bytes, fact.real.metadata_bytes) for fact in facts), default=0)
    return f"{manifests} | {files:.1%} | {size:.2%}"


def _table(change: Change) -> Iterator[str]:
    yield f"**`{change.table}`**, {change.what}\n"
    yield "| predicate | manifests read | data files read | metadata bytes read | bytes off by |"
    yield "|---|---:|---:|---:|---:|"
    for fact in change.facts[:MOST_ROWS]:
        sides = (fact.before, fact.predicted, fact.real)
        cells = [
            " / ".join(f"{getattr(side, name):,}" for side in sides)
            for name in ("manifests", "data_files", "metadata_bytes")
        ]
        error = off(fact.predicted.metadata_bytes, fact.real.metadata_bytes)
        yield f"| `{fact.where}` | {' | '.join(cells)} | {error:.2%} |"
    if (left := len(change.facts) - MOST_ROWS) > 0:
        yield f"\nAnd {left} more predicates, none of them further off than the first table says."
    yield ""


def demo_changes(spark: SparkSession, settings: SettingsDocument) -> Iterator[Change]:
    """Rewrites and repartitions copies of the demonstration lake's tables."""
    copies = Copies(spark, settings)
    for table, specs in SPECS.items():
        name, wheres = TableName.parse(table), predicates(settings, table)
        yield copies.rewrite_manifests(name, wheres)
        for sort_by in SORTED.get(table, ()):
            yield copies.rewrite_manifests(name, wheres, sort_by)
        for spec in specs:
            yield copies.partition_otherwise(name, wheres, spec)


def benchmark_changes(spark: SparkSession, settings: SettingsDocument, home: Path, files: int) -> Iterator[Change]:
    """Rewrites the manifests of the planning benchmark's table, which has no data files."""
    shape = Shape(files, 94, max(2, files // 1000))
    ensure_table(spark, shape, home)
    wheres = [predicate.where for predicate in benchmark_predicates(100)]
    copies = Copies(spark, settings, "bench")
    yield copies.rewrite_manifests(shape.name, wheres)
    yield copies.rewrite_manifests(shape.name, wheres, by_hand=True)


def main() -> None:
    """Builds the tables where they are missing, changes copies of them, and writes the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--home", type=Path, default=Path(".planning-health/prediction-against-fact"))
    parser.add_argument("--output", type=Path, default=Path("docs/prediction-against-fact.md"))
    parser.add_argument("--benchmark-files", type=int, default=100_000)
    arguments = parser.parse_args()
    home = arguments.home.resolve()
    (home / "lake").mkdir(parents=True, exist_ok=True)
    demo, bench = load_settings(DEMO_SETTINGS), benchmark_settings(home)
    settings = demo.model_copy(update={"home": str(home), "catalogs": demo.catalogs | bench.catalogs})
    spark = spark_session(settings, "prediction against fact")
    build_lake(spark)
    changes = [*demo_changes(spark, settings), *benchmark_changes(spark, settings, home, arguments.benchmark_files)]
    spark.stop()
    arguments.output.write_text(document(changes))


if __name__ == "__main__":
    main()
