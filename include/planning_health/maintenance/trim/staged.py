"""The manifest files that a trim writes before its commit, and when they may be removed again."""

from __future__ import annotations

import glob
import logging
from typing import Any, Final
from uuid import uuid4

from planning_health.maintenance.java_table import RUN_ID_PROPERTY, SPEC_ID_PROPERTY, own_snapshots
from planning_health.metadata.storage_options import filesystem_of
from planning_health.run_folder import run_key

logger = logging.getLogger(__name__)

_RUN_CHARACTERS: Final = 60


class Staged:
    """The files of one attempt: all begin with a prefix that no other attempt has.

    Args:
        java_table: the table, freshly loaded.
        summary: what marks the commit's snapshot: the run and the spec.

    Attributes:
        prefix: how the files' names begin, with their folder.
        io_properties: what the executors need to write them.
    """

    def __init__(self, java_table: Any, summary: dict[str, str]) -> None:
        self._table = java_table
        self._run_id, self._spec_id = summary[RUN_ID_PROPERTY], int(summary[SPEC_ID_PROPERTY])
        name = f"trim-{run_key(self._run_id)[-_RUN_CHARACTERS:]}-s{self._spec_id}-"
        self._attempts = str(java_table.operations().metadataFileLocation(name))
        self.prefix = f"{self._attempts}{uuid4()}"
        self.io_properties = dict(java_table.io().properties())

    def remove(self) -> None:
        """Removes this attempt's files; what cannot be removed is named in the log."""
        filesystem, prefix = filesystem_of(self.prefix, self.io_properties)
        self._remove(filesystem, filesystem.glob(f"{glob.escape(prefix)}-m*.avro"))

    def has_landed(self) -> bool:
        """Whether the table's history has this attempt's commit, whatever the catalog answered.

        True as well when that cannot be found out: then nothing may be removed (apache/iceberg#12792).
        """
        try:
            self._table.refresh()
            ours = own_snapshots(self._table, self._run_id).get(self._spec_id)
            return ours is not None and any(path.startswith(self.prefix) for path in self._manifests_of(ours))
        except Exception:
            logger.warning("whether %s was committed is not known: its files stay", self.prefix, exc_info=True)
            return True

    def remove_earlier(self) -> None:
        """Removes what attempts of this run have left that were killed or whose answer was lost. Call after a commit.

        None of them can land any more: it would replace manifests of the spec that this commit has replaced, which
        Iceberg refuses. Files of an attempt that landed and was rolled back are in a snapshot, and stay.
        """
        try:
            filesystem, prefix = filesystem_of(self._attempts, self.io_properties)
            found = {path.rpartition("/")[2]: path for path in filesystem.glob(f"{glob.escape(prefix)}*-m*.avro")}
            own = self.prefix.rpartition("/")[2]
            earlier = {name: path for name, path in found.items() if not name.startswith(own)}
            if not earlier:
                return
            self._table.refresh()
            for snapshot in self._table.snapshots():
                for path in self._manifests_of(snapshot.snapshotId()):
                    earlier.pop(path.rpartition("/")[2], None)
            self._remove(filesystem, list(earlier.values()))
        except Exception:
            logger.warning("what earlier attempts left at %s was not removed", self._attempts, exc_info=True)

    def _manifests_of(self, snapshot_id: int) -> list[str]:
        return [str(m.path()) for m in self._table.snapshot(snapshot_id).allManifests(self._table.io())]

    def _remove(self, filesystem: Any, paths: list[str]) -> None:
        for path in paths:
            try:
                filesystem.rm_file(path)
            except OSError as error:
                logger.warning("%s could not be removed: %s", path, error.strerror or type(error).__name__)
