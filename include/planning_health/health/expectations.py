"""Great Expectations suites: is the measurement sound (integrity), and is the table as healthy as it should be.

Only a failed integrity suite blocks a table: what follows would be computed from contradictory numbers. The health
suite is generated from the table's thresholds. Both run on small frames, one row a manifest or a partition field, so
that no result carries the table's entries. Great Expectations is imported when a suite runs: it takes seconds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planning_health.errors import WorkFailedError
from planning_health.health.analysis import levelled_signals
from planning_health.health.measures import Measures
from planning_health.health.thresholds import Thresholds
from planning_health.metadata.model import PlanningMetadata

if TYPE_CHECKING:
    import pandas as pd

_COUNTS: Final = ("added", "existing", "deleted")


@dataclass(frozen=True)
class Checked:
    """One expectation's outcome.

    Attributes:
        observed: the observed value, or how many manifests broke the expectation.
        expected: what was expected, in words.
        severity: ``critical`` or ``warning``; integrity is always critical.
    """

    name: str
    success: bool
    observed: float | None
    expected: str
    severity: str


@dataclass(frozen=True)
class Validation:
    """Both suites' outcomes for one table.

    Attributes:
        blocking: the integrity suite failed, so that nothing further should be computed from the measurement.
    """

    integrity: list[Checked]
    health: list[Checked]

    @property
    def blocking(self) -> bool:
        """Whether the integrity suite failed."""
        return not all(item.success for item in self.integrity)

    @property
    def success(self) -> bool:
        """Whether both suites passed."""
        return all(item.success for item in [*self.integrity, *self.health])

    @property
    def reason(self) -> str | None:
        """The broken integrity expectations in one line; ``None`` when there is none."""
        broken = [f"{item.name}: expected {item.expected}" for item in self.integrity if not item.success]
        return "; ".join(broken) or None

    def as_json(self) -> dict[str, Any]:
        """The table's part of the validation result."""
        return {
            "success": self.success,
            "blocking": self.blocking,
            "reason": self.reason,
            "expectations": [
                {"suite": suite, **vars(item)}
                for suite, items in (("integrity", self.integrity), ("health", self.health))
                for item in items
            ],
        }


class Validator:
    """Runs the suites in one ephemeral context, without analytics and progress bars.

    Raises:
        WorkFailedError: when Great Expectations is not installed.
    """

    def __init__(self) -> None:
        os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read at import
        try:
            import great_expectations as gx
            from great_expectations.data_context.types import base
        except ModuleNotFoundError as error:
            raise WorkFailedError(
                "great-expectations is not installed: pip install 'planning-health[validation]'"
            ) from error
        self._gx = gx
        config = base.DataContextConfig(
            store_backend_defaults=base.InMemoryStoreBackendDefaults(),  # no documentation site in a temporary folder
            progress_bars=base.ProgressBarsConfig(globally=False),
            analytics_enabled=False,
        )
        source = gx.get_context(mode="ephemeral", project_config=config).data_sources.add_pandas("measurement")
        self._batches = source.add_dataframe_asset("frame").add_batch_definition_whole_dataframe("whole")

    def validate(self, metadata: PlanningMetadata, thresholds: Thresholds, filter_columns: Sequence[str]) -> Validation:
        """Validates one table's measurement.

        Args:
            metadata: the recording.
            thresholds: the table's thresholds, from which the health suite is generated.
            filter_columns: columns that the workload's queries filter by.
        """
        measures = Measures(metadata, filter_columns)
        integrity = self._run("integrity", manifest_frame(measures), self._integrity())
        signals = signal_frame(measures, thresholds)
        return Validation(integrity, self._run("health", signals, self._health(signals, thresholds)))

    def _integrity(self) -> list[Any]:
        expect = self._gx.expectations
        zero = {"min_value": 0, "max_value": 0}
        return [
            *(
                expect.ExpectColumnPairValuesToBeEqual(
                    column_A=f"listed_{kind}",
                    column_B=f"counted_{kind}",
                    ignore_row_if="either_value_is_missing",
                    **_meta(f"{kind}_entries_agree", f"{kind} entries as the manifest list counts them"),
                )
                for kind in _COUNTS
            ),
            expect.ExpectColumnPairValuesToBeEqual(
                column_A="recorded", column_B="counted", **_meta("entries_complete", "each counted entry recorded once")
            ),
            expect.ExpectColumnValuesToBeUnique(column="path", **_meta("manifests_once", "each manifest present once")),
            expect.ExpectColumnValuesToBeBetween(
                column="deleted_ratio", min_value=0, max_value=1, **_meta("ratios_in_bounds", "a ratio from 0 to 1")
            ),
            expect.ExpectColumnValuesToBeBetween(
                column="statistics_share", min_value=0, max_value=1, **_meta("shares_in_bounds", "a share from 0 to 1")
            ),
            expect.ExpectColumnSumToBeBetween(
                column="outside", **zero, **_meta("summaries_contain_entries", "no live entry outside its summary")
            ),
            expect.ExpectColumnSumToBeBetween(
                column="inverted", **zero, **_meta("summaries_in_order", "no lower bound above an upper one")
            ),
            expect.ExpectColumnSumToBeBetween(
                column="wrong_width", **zero, **_meta("summaries_fit_spec", "as many summaries as the spec has fields")
            ),
        ]

    def _health(self, signals: pd.DataFrame, thresholds: Thresholds) -> list[Any]:
        """Two expectations a measured signal; a threshold at infinity is none."""
        return [
            self._gx.expectations.ExpectColumnMaxToBeBetween(
                column=signal,
                max_value=limit,
                strict_max=True,
                **_meta(f"{signal}_below_{severity}", f"below {limit:g}", severity),
            )
            for signal, threshold in thresholds.by_signal.items()
            if signal in signals and signals[signal].notna().any()
            for severity, limit in (("warning", threshold.warning), ("critical", threshold.critical))
            if math.isfinite(limit)
        ]

    def _run(self, name: str, frame: pd.DataFrame, expectations: list[Any]) -> list[Checked]:
        if not expectations:
            return []
        suite = self._gx.ExpectationSuite(name=name, expectations=expectations)
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        return [_checked(result) for result in batch.validate(suite, result_format="BASIC").results]


def _meta(name: str, expected: str, severity: str = "critical") -> dict[str, Any]:
    return {"severity": severity, "meta": {"name": name, "expected": expected}}


def _checked(result: Any) -> Checked:
    configuration, outcome = result.expectation_config, result.result
    if (result.exception_info or {}).get("raised_exception"):
        raise WorkFailedError(f"expectation {configuration.meta['name']}: {result.exception_info['exception_message']}")
    observed = outcome.get("observed_value", outcome.get("unexpected_count"))
    return Checked(
        name=configuration.meta["name"],
        success=bool(result.success),
        observed=None if observed is None else float(observed),
        expected=configuration.meta["expected"],
        severity=str(getattr(configuration.severity, "value", configuration.severity)),
    )


def manifest_frame(measures: Measures) -> pd.DataFrame:
    """One row a manifest: listed and counted entries, ratios, and what its summaries get wrong."""
    import pandas as pd

    picture = measures.picture
    table, count = picture.metadata.manifests, len(picture.manifests.length)
    recorded = np.concatenate([picture.data.manifest, picture.deletes.manifest])
    outside, inverted, wrong_width = (np.zeros(count, dtype=np.int64) for _ in range(3))
    for problem in measures.integrity.summaries:
        for ordinal, entries in problem.entries.items():
            outside[ordinal] += entries
        inverted[problem.inverted] += 1
        wrong_width[problem.width] = 1
    statistics = np.array([sum(item["bytes"] for item in row or ()) for row in table["statistics_bytes"].to_pylist()])
    uncompressed = picture.manifests.uncompressed.astype(np.float64)
    return pd.DataFrame(
        {
            "path": picture.paths,
            **{f"listed_{kind}": _floats(table[f"{kind}_files_count"]) for kind in _COUNTS},
            **{f"counted_{kind}": _floats(table[f"entries_{kind}"]) for kind in _COUNTS},
            "counted": picture.manifests.entries,
            "recorded": np.bincount(recorded[(recorded >= 0) & (recorded < count)], minlength=count)[:count],
            "deleted_ratio": picture.manifests.deleted_ratio,
            "statistics_share": np.divide(
                statistics, uncompressed, out=np.full(count, np.nan), where=uncompressed > 0, casting="unsafe"
            ),
            "outside": outside,
            "inverted": inverted,
            "wrong_width": wrong_width,
        }
    )


def _floats(column: Any) -> Any:
    """A whole-number column with NaN for null."""
    return column.to_pandas().astype("float64")


def signal_frame(measures: Measures, thresholds: Thresholds) -> pd.DataFrame:
    """One column a signal with thresholds, one row a scope key; NaN where it is not measured or not held against it."""
    import pandas as pd

    values: dict[str, list[float | None]] = {}
    for item in levelled_signals(measures, thresholds):
        excused = item["level"] == "ok" and thresholds.level(item["signal"], item["value"]) not in (
            "ok",
            "not_measured",
        )
        if item["signal"] in thresholds.by_signal:
            values.setdefault(item["signal"], []).append(None if excused else item["value"])
    return pd.DataFrame({name: pd.Series(column, dtype="float64") for name, column in values.items()})
