"""Recordings are saved whole and loaded as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.errors import NotMeasurableError
from planning_health.metadata import PlanningMetadata, load, save
from planning_health.metadata.store import DATA_FILES, write_parquet

SCHEMA = Schema(NestedField(1, "i", IntegerType()))


def recording() -> PlanningMetadata:
    files = [File(f"f{number}", (number,), lower={"i": number}) for number in range(4)]
    manifests = [
        Manifest(files[:3]),
        Manifest([File("pos", (1,), content=1, lower={"file_path": b"f1"})], content=1),
        Manifest(files[3:]),
    ]
    return picture(SCHEMA, [spec((1, "identity"))], manifests, properties={"a": "ü"})


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved = recording()
    save(saved, str(tmp_path))
    loaded = load(str(tmp_path))
    assert loaded.manifests.equals(saved.manifests)
    assert loaded.data_files.equals(saved.data_files)
    assert loaded.delete_files.equals(saved.delete_files)
    assert loaded.info == replace(saved.info, metadata=loaded.info.metadata)
    assert loaded.info.properties == {"a": "ü"}


def test_a_recording_replaces_an_earlier_one_whole(tmp_path: Path) -> None:
    saved = recording()
    save(saved, str(tmp_path))
    write_parquet(saved.data_files, str(tmp_path / DATA_FILES / "part-99999.parquet"))
    save(saved, str(tmp_path))
    assert load(str(tmp_path)).data_files.equals(saved.data_files)


def test_parts_are_loaded_in_the_order_of_manifests_and_entries(tmp_path: Path) -> None:
    saved = recording()
    save(saved, str(tmp_path))
    folder = tmp_path / DATA_FILES
    (folder / "part-00000.parquet").unlink()
    write_parquet(saved.data_files.take([3, 1]), str(folder / "part-00000.parquet"))
    write_parquet(saved.data_files.take([2, 0]), str(folder / "part-00001.parquet"))
    (folder / "_SUCCESS").touch()
    assert load(str(tmp_path)).data_files.equals(saved.data_files)


def test_no_part_at_all_is_no_file(tmp_path: Path) -> None:
    save(recording(), str(tmp_path))
    (tmp_path / DATA_FILES / "part-00000.parquet").unlink()
    assert load(str(tmp_path)).data_files.num_rows == 0
    (tmp_path / DATA_FILES).rmdir()
    assert load(str(tmp_path)).data_files.num_rows == 0


def test_a_recording_without_its_last_file_or_of_another_version_is_not_measurable(tmp_path: Path) -> None:
    save(recording(), str(tmp_path))
    document = json.loads((tmp_path / "table.json").read_bytes())
    (tmp_path / "table.json").write_text(json.dumps(document | {"schema_version": 2}))
    with pytest.raises(NotMeasurableError, match="schema version 2; expected 1"):
        load(str(tmp_path))
    (tmp_path / "table.json").unlink()
    with pytest.raises(NotMeasurableError, match="no complete measurement"):
        load(str(tmp_path))


def test_a_recording_made_before_samples_were_kept_is_read(tmp_path: Path) -> None:
    save(recording(), str(tmp_path))
    (tmp_path / "samples.parquet").unlink()
    assert load(str(tmp_path)).samples.manifests == ()
