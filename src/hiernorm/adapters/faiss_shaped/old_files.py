"""Files that earlier versions of ``write_index`` wrote: NumPy archives of ids and rows."""

from __future__ import annotations

import io
import json
import zipfile
import zlib

import numpy as np
import numpy.typing as npt

from hiernorm.adapters.faiss_shaped.hn import IndexHN
from hiernorm.arrays import as_count

FORMAT = "hiernorm IndexHN 1"
ZIP = b"PK\x03\x04"


def is_old(data: npt.NDArray[np.uint8]) -> bool:
    """Whether bytes are those of an archive."""
    return data[: len(ZIP)].tobytes() == ZIP


def read_old(data: npt.NDArray[np.uint8]) -> IndexHN:
    """The index of an archive; ValueError if it is damaged or something else."""
    try:
        with np.load(io.BytesIO(data.tobytes()), allow_pickle=False) as archive:
            settings = json.loads(str(archive["settings"]))
            ids, rows = archive["ids"], archive["rows"]
        if settings["format"] != FORMAT:
            raise ValueError
        names = ("d", "metric", "major", "alpha")
        index = IndexHN(**{name: settings[name] for name in names})
        index.add_with_ids(rows, ids)
        index._index._next_id = as_count("next_id", settings["next_id"], least=0)
    except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile, zlib.error):
        # Their texts are about NumPy's archives, and some about options that nobody should use.
        raise ValueError(f"it is an archive, and not a whole one of format {FORMAT!r}") from None
    return index
