"""Planes in memory-mapped files: after a crash, a row is as it was saved, or known to be lost."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from demoa.aggregation.stores.codecs.codec import Plane, Planes
from demoa.aggregation.stores.saved import matching
from demoa.core.errors import StoreError
from demoa.core.threads import map_in_threads

LARGE = 1 << 30
"""Of files of so many bytes and more, pages that were read or written are let go of now and then."""

ENTRY = struct.Struct("<QI?")
"""What stands before a row in the log: which row, the checksum of what follows, and whether anything does: rows of
zeros are not written out."""

SAVED = "saved"
"""The file that says that rows are needed: without it they are those of a run that ended before it first saved."""

STAMPS = np.dtype([("checksum", "<u4"), ("epoch", "<u4")])


class MappedPlanes:
    """Planes in files of a folder of their own, with a checksum and an epoch for each row.

    An epoch ends when the server's state is saved. Before a row is first written in an epoch, what it held goes to a
    log: a server that takes up a saved state gets the rows that belong to it. A row that is neither in the log nor of
    the right epoch, or whose checksum is wrong, was torn, and counts as never received. Epochs are never used twice:
    what is written after an older state was taken up is not mistaken for what a newer one had.

    FOLDER/lock                one server at a time
    FOLDER/PLACE/PLANE.bin     the rows, one plane each; PLACE counts how often the number of rows has changed
    FOLDER/PLACE/stamps.bin    checksum and epoch of each row, and, last, the latest epoch that has begun
    FOLDER/PLACE/log-EPOCH     rows as they were at the end of that epoch, which a saved state belongs to
    FOLDER/PLACE/saved         is there once a state was saved that needs these rows
    """

    def __init__(
        self, folder: Path, rows: int, planes: Mapping[str, Plane], place: int = 0, lock: FolderLock | None = None
    ) -> None:
        """Begin with zeros; nothing is written before the first row is."""
        self._folder, self._rows, self._kinds, self._place = folder, rows, dict(planes), place
        self._lock = FolderLock(folder) if lock is None else lock
        self._files: dict[str, np.memmap[Any, Any]] = {}
        self._epoch = 1
        self._log: Log | None = None
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
        return MappedPlanes(self._folder, rows, self._kinds, self._place + 1, self._lock)

    def write(self, index: int) -> Planes:
        """Return the planes, of which row `index` is about to be written."""
        if not self._files:
            self._create()
        if index not in self._logged:
            assert self._log is not None
            self._log.add(index, self._stamps[index].tobytes(), self._row(index))
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
        return {"place": np.array([self._place, self._epoch if self._files else 0])}

    def settle(self) -> None:
        """Take note that what was returned by `saved` is saved: a new epoch begins."""
        if not self._files:
            return
        with _told(self.path):
            (self.path / SAVED).touch()
            self._begin(base=self._epoch, epoch=self._epoch + 1)
            for path in self._folder.iterdir():
                if path.is_dir() and path.name.isdigit() and int(path.name) != self._place:
                    shutil.rmtree(path, ignore_errors=True)

    def loaded(self, arrays: Mapping[str, NDArray[Any]]) -> MappedPlanes:
        """Return planes that hold what was saved; these are left as they are."""
        place, epoch = (int(number) for number in matching(arrays, "place", (2,), np.dtype(np.int64)))
        found = MappedPlanes(self._folder, self._rows, self._kinds, place, self._lock)
        if epoch == 0:
            return found
        if not (found.path / "stamps.bin").exists():
            raise StoreError(f"the rows of this state are missing: there is no {found.path}; put the folder back")
        found._open("r+")
        with _told(found.path):
            (found.path / SAVED).touch()
            latest = max(epoch, int(found._stamps["epoch"].max(initial=0)))
            found._undo(epoch)
            found._drop_torn(epoch, latest + 1)
            found._begin(base=epoch, epoch=latest + 1)
        return found

    def _create(self) -> None:
        if (self.path / SAVED).exists():
            raise StoreError(
                f"{self.path} holds the rows of an earlier run; load its state first, choose another folder, "
                "or delete this one"
            )
        with _told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._open("w+")
            self._begin(base=0, epoch=1)

    def _open(self, mode: Any) -> None:
        self._lock.take()
        sizes = {name: (self._rows, plane) for name, plane in self._kinds.items()}
        sizes["stamps"] = (self._rows + 1, Plane(STAMPS, 1))
        with _told(self.path):
            for name, (rows, plane) in sizes.items():
                shape = (rows, plane.columns)
                path = self.path / f"{name}.bin"
                if mode == "r+" and path.stat().st_size != rows * plane.columns * plane.dtype.itemsize:
                    raise StoreError(
                        f"{path} has another size than this server's rows; use the settings it was made with"
                    )
                self._files[name] = np.memmap(path, plane.dtype, mode, shape=shape)
        self.arrays = {name: self._files[name] for name in self._kinds}
        self._stamps = self._files["stamps"][:, 0]

    def _begin(self, *, base: int, epoch: int) -> None:
        """Begin an epoch, with a log that leads back to the end of another."""
        self._epoch = self._stamps[-1]["epoch"] = epoch
        self._logged.clear()
        target = self.path / f"log-{base}"
        for path in self.path.glob("log-*"):
            if path != target:
                path.unlink()
        self._log = Log(target)

    def _row(self, index: int) -> bytes:
        return b"".join(self.arrays[name][index].tobytes() for name in self._kinds)

    def _undo(self, epoch: int) -> None:
        """Bring rows that were written after the end of an epoch back to what they were."""
        size = sum(plane.columns * plane.dtype.itemsize for plane in self._kinds.values())
        for index, stamp, content in read_log(self.path / f"log-{epoch}", size, self._rows):
            start = 0
            for name, plane in self._kinds.items():
                stop = start + plane.columns * plane.dtype.itemsize
                self._files[name][index] = np.frombuffer(content[start:stop], plane.dtype) if content else 0
                start = stop
            self._stamps[index] = np.frombuffer(stamp, STAMPS)[0]

    def _drop_torn(self, epoch: int, now: int) -> None:
        """Set rows to zero that are not what they were at the end of an epoch.

        They are stamped with the present one: whoever takes up the same state again is told of them again.
        """

        def torn(index: int) -> bool:
            stamp = self._stamps[index]
            if stamp["epoch"] == 0:
                return any(self.arrays[name][index].any() for name in self._kinds)
            return bool(stamp["epoch"] > epoch or stamp["checksum"] != zlib.crc32(self._row(index)))

        self._lost = [index for index, bad in enumerate(map_in_threads(torn, range(self._rows))) if bad]
        for index in self._lost:
            for array in self.arrays.values():
                array[index] = 0
            self._stamps[index] = (zlib.crc32(self._row(index)), now)
        self.passed()


class Log:
    """What rows held before they were written over."""

    def __init__(self, path: Path) -> None:
        """Begin an empty one."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        self._path = path

    def add(self, index: int, stamp: bytes, content: bytes) -> None:
        """Write down what a row held; where that fails, the log ends as it did before."""
        kept = content if np.frombuffer(content, np.uint8).any() else b""
        left = memoryview(ENTRY.pack(index, zlib.crc32(kept), bool(kept)) + stamp + kept)
        end = os.fstat(self._file).st_size
        with _told(self._path):
            try:
                while left:
                    left = left[os.write(self._file, left) :]
            except BaseException:
                os.ftruncate(self._file, end)
                raise

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)


def read_log(path: Path, size: int, rows: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield index, stamp and content of each row in a log, as far as it is whole; zeros have no content."""
    if not path.exists():
        return
    length = ENTRY.size + STAMPS.itemsize
    with path.open("rb") as file:
        while len(head := file.read(length)) == length:
            index, checksum, follows = ENTRY.unpack(head[: ENTRY.size])
            content = file.read(size) if follows else b""
            if len(content) < size * follows or zlib.crc32(content) != checksum or index >= rows:
                return  # the log was torn here, and so this row was not touched yet
            yield index, head[ENTRY.size :], content


class FolderLock:
    """Sees to it that one server at a time has a folder; planes of one server share it, and it ends with them."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is locked yet."""
        self._folder = folder
        self._file: FileLock | None = None

    def take(self) -> None:
        """Take the folder, or refuse."""
        if self._file is not None:
            return
        with _told(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._folder / "lock", thread_local=False)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise StoreError(f"another server has its rows in {self._folder}; stop it, or choose another") from None
        self._file = lock


class _told:  # noqa: N801
    """Says in one line that files cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, StoreError):
            raise StoreError(f"cannot write to {self._path}: {error.strerror or error}; make room, or choose another")
