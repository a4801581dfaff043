"""Planes in memory-mapped files: after a crash, a row is as it was saved, or known to be lost."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.stores.codecs.codec import Plane, Planes
from demoa.aggregation.stores.saved import matching
from demoa.core.errors import StoreError
from demoa.core.threads import map_in_threads

LARGE = 1 << 30
"""Of files of so many bytes and more, pages that were read or written are let go of now and then."""

ENTRY = struct.Struct("<QI")
"""What stands before a row in the log: which row, and the checksum of what follows. Rows of epoch 0 are zeros, and
nothing follows."""

SAVED = "saved"
"""The file that says that rows may be needed: without it they are those of a run that ended before it first saved."""

STAMPS = np.dtype([("checksum", "<u4"), ("epoch", "<u4")])


class MappedPlanes:
    """Planes in files of a folder of their own, with a checksum and an epoch for each row.

    An epoch ends when the server's state is saved. Before a row is first written in an epoch, what it held goes to a
    log: a server that takes up a saved state gets the rows that belong to it. A row that is neither in the log nor of
    the right epoch, or whose checksum is wrong, was torn, and counts as never received.

    FOLDER/PLACE/PLANE.bin     the rows, one plane each; PLACE counts how often the number of rows has changed
    FOLDER/PLACE/stamps.bin    checksum and epoch of each row
    FOLDER/PLACE/log-EPOCH     rows as they were before that epoch
    FOLDER/PLACE/saved         is there once a state may have been saved that needs these rows
    """

    def __init__(self, folder: Path, rows: int, planes: Mapping[str, Plane], place: int = 0) -> None:
        """Begin with zeros; nothing is written before the first row is."""
        self._folder, self._rows, self._kinds, self._place = folder, rows, dict(planes), place
        self._files: dict[str, np.memmap[Any, Any]] = {}
        self._epoch = 1
        self._logged: set[int] = set()
        self._lost: list[int] = []
        self.arrays: Planes = {
            name: np.broadcast_to(np.zeros(1, plane.dtype), (rows, plane.columns)) for name, plane in planes.items()
        }

    @property
    def path(self) -> Path:
        """The folder of these planes."""
        return self._folder / str(self._place)

    @property
    def lost(self) -> tuple[int, ...]:
        """The rows that were found torn when a saved state was taken up; they are zero."""
        return tuple(self._lost)

    def resized(self, rows: int) -> MappedPlanes:
        """Return planes of zeros for another number of rows, beside these."""
        return MappedPlanes(self._folder, rows, self._kinds, self._place + 1)

    def write(self, index: int) -> Planes:
        """Return the planes, of which row `index` is about to be written."""
        if not self._files:
            self._create()
        if index not in self._logged:
            content = self._row(index) if self._stamps[index]["epoch"] else b""
            head = ENTRY.pack(index, zlib.crc32(content)) + bytes(self._stamps[index].tobytes())
            with _told(self.path):
                os.write(self._log, head + content)
            self._logged.add(index)
        return self.arrays

    def written(self, index: int) -> None:
        """Take note that row `index` is written."""
        self._stamps[index] = (zlib.crc32(self._row(index)), self._epoch)

    def passed(self) -> None:
        """Take note that many rows were read or written: their pages need not stay with this process."""
        for file in self._files.values():
            if file.nbytes >= LARGE:
                file._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what must be saved to get the same rows back, after the files are on disk."""
        with _told(self.path):
            for file in self._files.values():
                file.flush()
            if self._files:
                (self.path / SAVED).touch()
        return {"place": np.array([self._place, self._epoch if self._files else 0])}

    def settle(self) -> None:
        """Take note that what was returned by `saved` is saved: a new epoch begins."""
        if not self._files:
            return
        self._epoch += 1
        self._open_log()
        for path in self._folder.iterdir():
            if path.is_dir() and path.name.isdigit() and int(path.name) != self._place:
                shutil.rmtree(path, ignore_errors=True)

    def loaded(self, arrays: Mapping[str, NDArray[Any]]) -> MappedPlanes:
        """Return planes that hold what was saved; these are left as they are."""
        place, epoch = (int(number) for number in matching(arrays, "place", (2,), np.dtype(np.int64)))
        found = MappedPlanes(self._folder, self._rows, self._kinds, place)
        if epoch == 0:
            return found
        if not (found.path / "stamps.bin").exists():
            raise StoreError(f"the rows of this state are missing: there is no {found.path}; put the folder back")
        found._open("r+")
        found._epoch = epoch
        found._undo()
        found._drop_torn()
        found._epoch += 1
        found._open_log()
        return found

    def _create(self) -> None:
        if (self.path / SAVED).exists():
            raise StoreError(
                f"{self.path} holds the rows of an earlier run; load its state first, or choose another folder"
            )
        with _told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._open("w+")
            self._open_log()

    def _open(self, mode: Any) -> None:
        kinds = {**self._kinds, "stamps": Plane(STAMPS, 1)}
        with _told(self.path):
            for name, plane in kinds.items():
                shape = (self._rows, plane.columns)
                path = self.path / f"{name}.bin"
                if mode == "r+" and path.stat().st_size != self._rows * plane.columns * plane.dtype.itemsize:
                    raise StoreError(
                        f"{path} has another size than this server's rows; use the settings it was made with"
                    )
                self._files[name] = np.memmap(path, plane.dtype, mode, shape=shape)
        self.arrays = {name: self._files[name] for name in self._kinds}
        self._stamps = self._files["stamps"][:, 0]

    def _open_log(self) -> None:
        self._logged.clear()
        for path in self.path.glob("log-*"):
            path.unlink()
        self._log = os.open(self.path / f"log-{self._epoch}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def _row(self, index: int) -> bytes:
        return b"".join(self.arrays[name][index].tobytes() for name in self._kinds)

    def _undo(self) -> None:
        """Bring rows that were written after the state was saved back to what they were."""
        path = self.path / f"log-{self._epoch + 1}"
        size = sum(plane.columns * plane.dtype.itemsize for plane in self._kinds.values())
        if not path.exists():
            return
        with path.open("rb") as file:
            while len(head := file.read(ENTRY.size + STAMPS.itemsize)) == ENTRY.size + STAMPS.itemsize:
                index, checksum = ENTRY.unpack(head[: ENTRY.size])
                stamp = np.frombuffer(head[ENTRY.size :], STAMPS)[0]
                expected = size if stamp["epoch"] else 0
                content = file.read(expected)
                if len(content) < expected or zlib.crc32(content) != checksum or index >= self._rows:
                    break  # the log was torn here, and so this row was not touched yet
                start = 0
                for name, plane in self._kinds.items():
                    stop = start + plane.columns * plane.dtype.itemsize
                    self._files[name][index] = np.frombuffer(content[start:stop], plane.dtype) if content else 0
                    start = stop
                self._stamps[index] = stamp

    def _drop_torn(self) -> None:
        """Set rows to zero that are not what was written."""

        def torn(index: int) -> bool:
            stamp = self._stamps[index]
            if stamp["epoch"] == 0:
                return any(self.arrays[name][index].any() for name in self._kinds)
            return bool(stamp["epoch"] > self._epoch or stamp["checksum"] != zlib.crc32(self._row(index)))

        self._lost = [index for index, bad in enumerate(map_in_threads(torn, range(self._rows))) if bad]
        for index in self._lost:
            for array in self.arrays.values():
                array[index] = 0
            self._stamps[index] = (0, 0)
        self.passed()


class _told:  # noqa: N801
    """Says in one line that files cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise StoreError(f"cannot write to {self._path}: {error.strerror or error}; make room, or choose another")
