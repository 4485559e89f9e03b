"""An index in one file, and in a pickle."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hiernorm import _core
from hiernorm.fitting import fill
from hiernorm.index_changes import IndexChanges
from hiernorm.index_file import load_index, save_index
from hiernorm.payload.memory import MemoryPayload
from hiernorm.verification import Verification

Loaded = TypeVar("Loaded", bound="IndexPersistence")


class IndexPersistence(IndexChanges):
    """The part of :class:`hiernorm.Index` that writes and reads it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file, whole or not at all; :meth:`load` maps it.

        Payload and string keys are in the file too. Deleted entries are left out. What was at
        ``path`` is replaced.

        Examples
        --------
        >>> import hiernorm, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "vectors.hni"
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0], [0, 1]])
        2
        >>> index.save(path)
        >>> hiernorm.Index.load(path).digest == index.digest
        True
        """
        with self._write_lock:
            if len(self) == 0:
                raise ValueError("the index is empty: add vectors before you save it")
            save_index(
                Path(path),
                self._settings,
                self._core,
                self._entries(),
                self._payload,
                self._next_id,
                self._fitted_on,
            )

    @classmethod
    def load(
        cls: type[Loaded],
        path: str | os.PathLike[str],
        *,
        check: bool = False,
        threads: int | None = None,
    ) -> Loaded:
        """An index that :meth:`save` has written, with the same entries, parameters and answers.

        The file is mapped: nothing is read but what a search needs, and processes share it. The
        first addition copies the entries to memory; the file never changes. Engine ``"paper"``
        always copies.

        Parameters
        ----------
        path
            The file.
        check
            Read the whole file now and compare it with its digests. Without it, a block of rows or
            codes is compared with its checksum when it is first read; files of earlier versions
            have no checksums. A block that is not what was written raises DamagedError.
        threads
            As for :class:`Index`.

        Raises
        ------
        hiernorm.storage.errors.DamagedError
            The file is truncated or changed, or is no saved index.
        hiernorm.storage.errors.NotADatabaseError
            It is a file of vectors: ``.npy``, ``.npz`` or Parquet.
        hiernorm.storage.errors.FormatVersionError
            A newer hiernorm has written it.
        """
        saved = load_index(Path(path), check=check)
        index = cls.__new__(cls)
        index._settings = replace(saved.settings, threads=threads)
        index._payload = MemoryPayload(string_keys=False)
        index._prepare()
        if saved.core is None:
            index.add(saved.rows, saved.ids)
        else:
            index._core, index._fitted_on = saved.core, saved.fitted_on
            index._file = saved.file
        index._payload = saved.payload
        index._next_id = saved.next_id
        return index

    def check(self) -> Verification:
        """Read the whole file of a loaded index and list what is not as it was written.

        An index that was not loaded, or has changed since, is in memory and has no file.

        Examples
        --------
        >>> import hiernorm
        >>> index = hiernorm.Index(dim=2)
        >>> index.add([[1, 0]])
        1
        >>> index.check().ok
        True
        """
        saved = self._file if self._core.attached else None
        return Verification([] if saved is None else saved.damage())

    def __getstate__(self) -> dict[str, Any]:
        with self._write_lock:
            ids, rows = self._entries()
            encoding = self._core.encoding()
            return {
                "settings": self._settings,
                "ids": ids,
                "rows": rows,
                "fit": None if encoding is None else (encoding.state(), encoding.rotation()),
                "flat_plan": self._core.flat_plan,
                "fitted_on": self._fitted_on,
                "next_id": self._next_id,
                "payload": self._payload,
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._settings = state["settings"]
        self._payload = state.get("payload", MemoryPayload(string_keys=False))
        self._prepare()
        if state["fit"] is None and self._settings.needs_fit and len(state["ids"]):
            self._core = self._settings.make_core("flat")
        if state["fit"] is not None:
            self._core.set_encoding(_core.Encoding.restore(self._settings.dim, *state["fit"]))
        if len(state["ids"]):
            fill(self._core, state["ids"], state["rows"])
        self._core.plan_flat(state.get("flat_plan", []))
        self._fitted_on = state["fitted_on"]
        self._next_id = state["next_id"]
