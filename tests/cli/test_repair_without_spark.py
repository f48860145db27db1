"""Repair as it looks to somebody with PyIceberg's SQLite catalog and no Spark: what is missing, what can be done."""

from __future__ import annotations

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from tests.cli.test_cli import Cli

NEEDS = (
    "--apply needs pip install '.[spark]', Java 17 or 21 and catalog 'shop' defined as type: jdbc instead of sql "
    "(README, Catalogs)"
)
REFUSED = (
    "error: catalog 'shop' is of type 'sql', which Spark cannot use: define it as type 'jdbc' with a jdbc: address "
    "(README, Catalogs)\n"
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    folder = tmp_path_factory.mktemp("shop")
    catalog = SqlCatalog("shop", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("ops")
    rows = pa.table({"device_id": pa.array(range(3), pa.int64()), "note": ["a", "b", "c"]})
    table = catalog.create_table("ops.wide", rows.schema)
    for _ in range(8):
        table.append(rows)
    file = folder / "settings.yaml"
    properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}
    query = {"name": "one", "where": "device_id = 1"}
    document = {
        "catalogs": {"shop": {"properties": properties}},
        "tables": [{"match": "shop.*", "queries": [query]}],
    }
    file.write_text(yaml.safe_dump(document))
    return Cli(file)


TRIM = ("--set-metrics", "default=none", "--set-metrics", "column.device_id=full", "--trim")


def test_a_dry_run_and_advice_say_what_apply_needs_beside_the_command(shop: Cli) -> None:
    dry_run = shop("maintain", "shop.ops.wide")
    command = f"planning-health maintain shop.ops.wide --settings {shop.settings_file} --apply"
    assert dry_run.out.splitlines()[-2:] == [f"{NEEDS}. Carry it out with:", command]
    advice = shop("advise-metrics", "shop.ops.wide").out.splitlines()
    assert (advice[-2], advice[-1].startswith("planning-health maintain shop.ops.wide ")) == (f"{NEEDS}:", True)


def test_apply_refuses_a_catalog_that_spark_cannot_use_before_anything_starts(
    shop: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for arguments in (["maintain", "shop.ops.wide", "--apply"], ["verify", "shop.ops.wide", "--spark"]):
        result = shop(*arguments)
        assert (result.status, result.out, result.err) == (2, "", REFUSED)


def test_a_proposed_trim_says_what_it_does_and_gives_the_whole_command(shop: Cli) -> None:
    shown = shop("maintain", "shop.ops.wide", *TRIM).out
    trim = f"maintain shop.ops.wide --trim --no-rewrite --spec-id 0 --settings {shop.settings_file} --apply"
    assert f"```sh\nplanning-health {trim}\n```" in shown
    assert "written again without the statistics that the metrics configuration does not ask for" in shown
    assert "keep their statistics until they are trimmed, as proposed beside this" in shown
    assert "rewrite_manifests copies them as they are" not in shown
    untrimmed = shop("maintain", "shop.ops.wide", *TRIM[:4]).out
    assert "rewrite_manifests copies them as they are" in untrimmed


def test_verify_takes_the_parent_an_id_or_a_ref_and_lists_snapshots_for_any_other(shop: Cli) -> None:
    found = shop("verify", "shop.ops.wide", "--json").json
    parent, now = found["data"]["against"], found["snapshot_id"]
    said = f"shop.ops.wide: snapshot {now}, compared with {parent}"
    for against in ([], ["--against", str(parent)]):
        assert shop("verify", "shop.ops.wide", *against).out.splitlines()[0] == said
    assert shop("verify", "shop.ops.wide", "--against", "main", "--json").json["data"]["against"] == now
    for unknown in ("17", "yesterday"):
        result = shop("verify", "shop.ops.wide", "--against", unknown)
        assert (result.status, result.out, result.err.count("append)")) == (2, "", 5)
        assert f"newest snapshots: {now} (" in result.err


def test_rollback_of_a_dry_run_says_that_it_changed_nothing(shop: Cli) -> None:
    run = shop("maintain", "shop.ops.wide", "--json").json["run_id"]
    result = shop("rollback", run)
    assert (result.status, result.out) == (2, "")
    assert (
        result.err == f"error: run {run!r} changed no table (it was a dry run, or proposed nothing): nothing to undo\n"
    )


def test_a_request_that_does_not_fit_is_told_once(shop: Cli, caplog: pytest.LogCaptureFixture) -> None:
    result = shop("maintain", "shop.ops.wide", "--set-metrics", "column.nope=full")
    assert result.status == 2
    assert (result.err.count("'nope' does not exist"), caplog.text) == (1, "")
