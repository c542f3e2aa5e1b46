"""The data folder of an embedded set-up: one user at a time, and old data put aside, never mixed with new.

The broker keeps its topics in memory, so that the results of a run that has ended belong to nothing that still is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from pipeline.errors import TrueupError

ARCHIVE = "archive"
SUBJECT_KEY = "subject-key"
ARCHIVED = ("clickhouse", "runners", "logs")
KEPT = 3


def ensure_subject_key(folder: Path) -> None:
    """Makes what subjects are hashed by, once: they stay the same from run to run."""
    key = folder / SUBJECT_KEY
    if not key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(secrets.token_hex(32))


class FolderInUse(TrueupError):
    """Another trueup uses the data folder."""


class FolderUnusable(TrueupError):
    """The data folder cannot be one."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path} cannot hold data: {error.strerror}; choose another folder with --data-dir")


def make_folder(path: Path) -> None:
    """
    Raises:
        FolderUnusable: it is not there, and cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(path, error) from error


class DataFolder:
    """A data folder, locked while it is used.

    Attributes:
        archived: where the data of an earlier run went; None if there was none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.archived: Path | None = None
        self._lock: int | None = None

    def __enter__(self) -> DataFolder:
        make_folder(self.path)
        try:
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FolderUnusable(self.path, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._lock, 32).decode(errors="replace").strip()
            os.close(self._lock)
            raise FolderInUse(
                f"{self.path} is used by another trueup (process {holder or 'unknown'}): stop it, or choose another "
                "folder with --data-dir"
            ) from error
        os.truncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)
        self._put_old_aside()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _put_old_aside(self) -> None:
        old = [self.path / name for name in ARCHIVED if (self.path / name).exists()]
        if not old:
            return
        archive = self.path / ARCHIVE
        self.archived = archive / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")
        self.archived.mkdir(parents=True)
        for one in old:
            one.rename(self.archived / one.name)
        for outdated in sorted(archive.iterdir())[:-KEPT]:
            shutil.rmtree(outdated)
