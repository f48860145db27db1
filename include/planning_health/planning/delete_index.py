"""Which delete files apply to which data files.

The rules are those of ``DeleteFileIndex``: equality deletes apply to strictly older data, position deletes and
deletion vectors to data of the same or a lower sequence number; the scope is (spec, partition), all data for
equality deletes of an unpartitioned spec, one path for position deletes that name one file. A deletion vector
replaces its file's position deletes. Equality deletes whose bounds or null counts exclude a file are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import NotMeasurableError
from planning_health.metadata.model import DELETE_FILE_PATH_ID, EQUALITY_DELETES, POSITION_DELETES
from planning_health.planning.comparable import Ints, Mask

if TYPE_CHECKING:
    from pyiceberg.types import NestedField

    from planning_health.planning.metrics_evaluator import MetricsColumns

_PAIRS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class FileColumns:
    """What delete matching needs to know of data files or delete files, one entry a file.

    Attributes:
        table: the recorded rows (paths, content, equality ids and so on).
        metrics: their column metrics.
        sequence: data sequence numbers.
        spec: spec ids.
        partition: numbers of partition tuples, unique over all specs and shared by data and delete files.
    """

    table: pa.Table
    metrics: MetricsColumns
    sequence: Ints
    spec: Ints
    partition: Ints


@dataclass
class DeleteFileIndex:
    """The delete files that survive a filter, by what they apply to.

    Args:
        deletes: all recorded delete files.
        rows: the indexed ones (live, in scanned delete manifests, not excluded by the filter).
        unpartitioned: ids of specs without partition fields.
        equality_field: finds a field by id in the table's schemas; None for an unknown id.
    """

    deletes: FileColumns
    rows: Ints
    unpartitioned: frozenset[int]
    equality_field: Callable[[int], NestedField | None]

    vectors: dict[str, int] = field(init=False, default_factory=dict)
    by_path: dict[str, list[int]] = field(init=False, default_factory=dict)
    by_partition: dict[int, list[int]] = field(init=False, default_factory=dict)
    equality_by_partition: dict[int, list[int]] = field(init=False, default_factory=dict)
    equality_global: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Sort the delete files into their groups."""
        table = self.deletes.table.take(pa.array(self.rows))
        contents = table["content"].to_pylist()
        formats = table["file_format"].to_pylist()
        referenced = table["referenced_data_file"].to_pylist()
        bound_paths = self._single_path(table)
        for row, content, file_format, path, bound in zip(
            self.rows.tolist(), contents, formats, referenced, bound_paths, strict=True
        ):
            if content == EQUALITY_DELETES:
                self._add_equality(row)
            elif file_format == "PUFFIN":
                self._add_vector(row, path)
            else:
                self._add_position(row, path if path is not None else bound)
        self.dvs = len(self.vectors)
        self.positions = contents.count(POSITION_DELETES) - self.dvs
        self.equalities = contents.count(EQUALITY_DELETES)

    @staticmethod
    def _single_path(table: pa.Table) -> list[str | None]:
        """Return the path that both ``file_path`` bounds name, for delete files of one data file."""
        lower, upper = f"lower_bound.{DELETE_FILE_PATH_ID}", f"upper_bound.{DELETE_FILE_PATH_ID}"
        if lower not in table.column_names or upper not in table.column_names:
            return [None] * len(table)
        pairs = zip(table[lower].to_pylist(), table[upper].to_pylist(), strict=True)
        return [a.decode() if a is not None and a == b else None for a, b in pairs]

    def _add_equality(self, row: int) -> None:
        if int(self.deletes.spec[row]) in self.unpartitioned:
            self.equality_global.append(row)
        else:
            self.equality_by_partition.setdefault(int(self.deletes.partition[row]), []).append(row)

    def _add_vector(self, row: int, path: str | None) -> None:
        if path is None:
            raise NotMeasurableError(f"deletion vector {self._path(row)} names no data file")
        if path in self.vectors:
            raise NotMeasurableError(f"two deletion vectors for the data file {path}: metadata is corrupted")
        self.vectors[path] = row

    def _add_position(self, row: int, path: str | None) -> None:
        if path is not None:
            self.by_path.setdefault(path, []).append(row)
        else:
            self.by_partition.setdefault(int(self.deletes.partition[row]), []).append(row)

    def _path(self, row: int) -> str:
        return str(self.deletes.table["file_path"][row])

    def attach(self, data: FileColumns, rows: Ints) -> tuple[Ints, Ints]:
        """Find the delete files of data files.

        Args:
            data: all recorded data files.
            rows: the data files asked about.

        Returns:
            (offsets, delete rows): the deletes of ``rows[i]`` are ``delete_rows[offsets[i]:offsets[i + 1]]``.

        Raises:
            NotMeasurableError: a deletion vector or path-scoped delete contradicts its data file.
        """
        pairs = _Pairs(len(rows))
        if len(self.rows) and len(rows):
            groups = _Groups(data.partition[rows])
            self._attach_equality(data, rows, groups, pairs)
            with_vector = self._attach_by_path(data, rows, pairs)
            for partition, deletes in self.by_partition.items():
                members = groups.members(partition)
                members = members[~with_vector[members]]
                for of_member, of_delete in self._in_sequence(data, rows, members, deletes, strictly=False):
                    pairs.add(of_member, of_delete)
        return pairs.by_data_file()

    def _in_sequence(
        self, data: FileColumns, rows: Ints, members: Ints, deletes: list[int], *, strictly: bool
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield all (member, delete) pairs in which the delete is newer (or as new) as the data file, in portions."""
        if not len(members):
            return
        ordered = np.array(deletes)[np.argsort(self.deletes.sequence[deletes], kind="stable")]
        first = np.searchsorted(
            self.deletes.sequence[ordered], data.sequence[rows[members]], side="right" if strictly else "left"
        )
        counts = len(ordered) - first
        portions = np.cumsum(counts) // _PAIRS_AT_ONCE
        for portion in np.unique(portions):
            chosen = portions == portion
            of_member = np.repeat(members[chosen], counts[chosen])
            starts = np.cumsum(counts[chosen]) - counts[chosen]
            inner = np.arange(len(of_member)) - np.repeat(starts, counts[chosen])
            yield of_member, ordered[np.repeat(first[chosen], counts[chosen]) + inner]

    def _attach_equality(self, data: FileColumns, rows: Ints, groups: _Groups, pairs: _Pairs) -> None:
        scopes = [(np.arange(len(rows)), self.equality_global)] if self.equality_global else []
        scopes += [(groups.members(partition), found) for partition, found in self.equality_by_partition.items()]
        for members, deletes in scopes:
            for ids, same in self._by_equality_ids(deletes).items():
                columns = [column for field_id in ids if (column := self._primitive(field_id, same[0])) is not None]
                for of_member, of_delete in self._in_sequence(data, rows, members, same, strictly=True):
                    possible = np.ones(len(of_member), dtype=np.bool_)
                    for column in columns:
                        possible &= self._may_contain(data, rows[of_member], of_delete, column)
                    pairs.add(of_member[possible], of_delete[possible])

    def _by_equality_ids(self, deletes: list[int]) -> dict[tuple[int, ...], list[int]]:
        groups: dict[tuple[int, ...], list[int]] = {}
        ids = self.deletes.table["equality_ids"].take(pa.array(deletes)).to_pylist()
        for delete, found in zip(deletes, ids, strict=True):
            groups.setdefault(tuple(found or ()), []).append(delete)
        return groups

    def _primitive(self, field_id: int, delete: int) -> NestedField | None:
        column = self.equality_field(field_id)
        if column is None:
            raise NotMeasurableError(f"equality delete {self._path(delete)} uses unknown field {field_id}")
        return column if column.field_type.is_primitive else None

    def _may_contain(self, data: FileColumns, rows: Ints, deletes: Ints, column: NestedField) -> Mask:
        """Compare one equality column's null counts and bounds of pairs of data files and delete files."""
        field_id, field_type, optional = column.field_id, column.field_type, not column.required
        theirs = data.metrics.field(field_id, field_type).take(rows)
        own = self.deletes.metrics.field(field_id, field_type).take(deletes)
        both_null = optional & (theirs.null_count != 0) & (own.null_count != 0)
        excluded = optional & theirs.nulls_only & (own.null_count == 0)
        excluded |= optional & own.nulls_only & (theirs.null_count == 0)
        ranges = theirs.lower.valid & theirs.upper.valid & own.lower.valid & own.upper.valid
        disjoint = ranges & (theirs.lower.gt_column(own.upper) | own.lower.gt_column(theirs.upper))
        possible: Mask = both_null | ~(excluded | disjoint)
        return possible

    def _attach_by_path(self, data: FileColumns, rows: Ints, pairs: _Pairs) -> Mask:
        """Attach what names a path; return which data files have a deletion vector."""
        with_vector = np.zeros(len(rows), dtype=np.bool_)
        names = list(self.vectors) + [path for path in self.by_path if path not in self.vectors]
        if not names:
            return with_vector
        paths = data.table["file_path"].take(pa.array(rows))
        found = pc.index_in(paths, value_set=pa.array(names, type=paths.type)).fill_null(-1).to_numpy()
        for index in np.flatnonzero(found >= 0):
            path = names[found[index]]
            if path in self.vectors:
                with_vector[index] = True
                self._attach_vector(data, rows, int(index), self.vectors[path], pairs)
            else:
                self._attach_path(data, rows, int(index), self.by_path[path], pairs)
        return with_vector

    def _attach_vector(self, data: FileColumns, rows: Ints, index: int, delete: int, pairs: _Pairs) -> None:
        row = int(rows[index])
        if self.deletes.sequence[delete] < data.sequence[row]:
            raise NotMeasurableError(
                f"deletion vector {self._path(delete)} (sequence {self.deletes.sequence[delete]}) is older than "
                f"its data file (sequence {data.sequence[row]}): metadata is corrupted"
            )
        self._check_partition(data, row, delete)
        pairs.add(np.array([index]), np.array([delete]))

    def _attach_path(self, data: FileColumns, rows: Ints, index: int, deletes: Iterable[int], pairs: _Pairs) -> None:
        row = int(rows[index])
        for delete in deletes:
            if self.deletes.sequence[delete] >= data.sequence[row]:
                self._check_partition(data, row, delete)
                pairs.add(np.array([index]), np.array([delete]))

    def _check_partition(self, data: FileColumns, row: int, delete: int) -> None:
        if self.deletes.partition[delete] != data.partition[row]:
            raise NotMeasurableError(
                f"delete file {self._path(delete)} and its data file {data.table['file_path'][row]} "
                "are in different partitions: metadata is corrupted"
            )


class _Groups:
    """Members of each partition, found by sorting once."""

    def __init__(self, partition: Ints) -> None:
        self._order = np.argsort(partition, kind="stable")
        self._sorted = partition[self._order]

    def members(self, partition: int) -> Ints:
        start, end = np.searchsorted(self._sorted, [partition, partition + 1])
        members: Ints = self._order[start:end]
        return members


class _Pairs:
    """(data file, delete file) pairs, collected in pieces."""

    def __init__(self, data_files: int) -> None:
        self._data_files = data_files
        self._members: list[Ints] = []
        self._deletes: list[Ints] = []

    def add(self, members: Ints, deletes: Ints) -> None:
        if len(members):
            self._members.append(members)
            self._deletes.append(deletes)

    def by_data_file(self) -> tuple[Ints, Ints]:
        if not self._members:
            return np.zeros(self._data_files + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        members = np.concatenate(self._members)
        order = np.argsort(members, kind="stable")
        counts = np.bincount(members, minlength=self._data_files)
        return np.concatenate(([0], np.cumsum(counts))), np.concatenate(self._deletes)[order]
