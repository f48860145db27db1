"""Great Expectations suites: is the measurement sound (integrity), and is the table as healthy as it should be.

Only a failed integrity suite blocks a table: what follows would be computed from contradictory numbers. The health
suite compares each signal with the table's thresholds. Both run on small frames, one row a manifest or a signal, so
that no result carries the table's entries. Few expectations judge many rows: Great Expectations takes milliseconds for
each, whatever it judges, and seconds to be imported, which happens when a suite runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.compute as pc

from planning_health.errors import WorkFailedError
from planning_health.health.analysis import levelled_signals
from planning_health.health.measures import Measures
from planning_health.health.thresholds import Thresholds
from planning_health.metadata.model import PlanningMetadata
from planning_health.settings.models import Threshold

if TYPE_CHECKING:
    import pandas as pd

_COUNTS: Final = ("added", "existing", "deleted")
_SEVERITIES: Final = ("warning", "critical")


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
            raise WorkFailedError("great-expectations is not installed: pip install '.[validation]'") from error
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
        results = self._run("integrity", manifest_frame(measures), self._integrity(), "BASIC")
        signals = signal_frame(measures, thresholds)
        return Validation([_checked(result) for result in results], self._health(signals, thresholds))

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

    def _health(self, signals: pd.DataFrame, thresholds: Thresholds) -> list[Checked]:
        """Both thresholds of each measured signal; one at infinity is none."""
        expectations = [
            self._gx.expectations.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=severity,
                column_B="value",
                ignore_row_if="either_value_is_missing",
                **_meta(f"signals_below_{severity}", f"each signal below its threshold for {severity}", severity),
            )
            for severity in _SEVERITIES
        ]
        results = self._run("health", signals, expectations, "COMPLETE")
        reached = {
            result.expectation_config.kwargs["column_A"]: set(
                signals["signal"].loc[result.result["unexpected_index_list"]]
            )
            for result in results
        }
        worst = signals.groupby("signal")["value"].max()
        return [
            Checked(
                name=f"{signal}_below_{severity}",
                success=signal not in reached[severity],
                observed=float(worst[signal]),
                expected=f"below {limit:g}",
                severity=severity,
            )
            for signal, threshold in thresholds.by_signal.items()
            if signal in worst
            for severity in _SEVERITIES
            if math.isfinite(limit := getattr(threshold, severity))
        ]

    def _run(self, name: str, frame: pd.DataFrame, expectations: list[Any], result_format: str) -> list[Any]:
        """The results of a suite."""
        suite = self._gx.ExpectationSuite(name=name, expectations=expectations)
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        results: list[Any] = batch.validate(suite, result_format=result_format).results
        for result in results:
            if (result.exception_info or {}).get("raised_exception"):
                told = result.exception_info["exception_message"]
                raise WorkFailedError(f"expectation {result.expectation_config.meta['name']}: {told}")
        return results


def _meta(name: str, expected: str, severity: str = "critical") -> dict[str, Any]:
    return {"severity": severity, "meta": {"name": name, "expected": expected}}


def _checked(result: Any) -> Checked:
    configuration, outcome = result.expectation_config, result.result
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
    columns = table["statistics_bytes"].combine_chunks()
    statistics = np.bincount(
        pc.list_parent_indices(columns), weights=pc.list_flatten(columns).field("bytes"), minlength=count
    )
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
    """One row a measured value that is held against thresholds, and those; NaN for one at infinity, which is none."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for item in levelled_signals(measures, thresholds):
        signal, value = item["signal"], item["value"]
        threshold, level = thresholds.by_signal.get(signal), thresholds.level(signal, value)
        excused = item["level"] == "ok" != level
        if threshold is not None and level != "not_measured" and not excused:
            rows.append({"signal": signal, "value": float(value)} | _finite(threshold))
    return pd.DataFrame(rows, columns=["signal", "value", *_SEVERITIES])


def _finite(threshold: Threshold) -> dict[str, float]:
    limits = {severity: getattr(threshold, severity) for severity in _SEVERITIES}
    return {severity: limit if math.isfinite(limit) else math.nan for severity, limit in limits.items()}
