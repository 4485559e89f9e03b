"""The table of a collection of photos: a Parquet file of keypoints, and what it belongs to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hiernorm._files import replacing
from hiernorm.array_types import Float64Array, Int64Array
from hiernorm.extras import import_extra
from hiernorm.vision.features import FeatureSettings

FORMAT = 1
KEY = b"hiernorm"
COLUMNS = ("photo", "x", "y", "scale", "angle", "id")


@dataclass(frozen=True)
class Photo:
    """A photo of a collection.

    Attributes
    ----------
    name
        Its path relative to the folder of the collection; with slashes on every system.
    digest
        SHA-256 of the file when it was described.
    width, height
        In pixels.
    """

    name: str
    digest: str
    width: int
    height: int


def table_of(path: Path) -> Path:
    """The table that belongs to a database: ``holiday.hn`` has ``holiday.parquet``."""
    return path.with_suffix(".parquet")


def write_table(
    file: Path,
    database: str | None,
    settings: FeatureSettings,
    model_digest: str,
    photos: list[Photo],
    frames: Float64Array,
    ids: Int64Array,
    names: list[str],
) -> None:
    """Write the table of a collection; the old one or the new one is there at every moment."""
    arrow = import_extra("pyarrow", "vision")
    parquet = import_extra("pyarrow.parquet", "vision")
    about: dict[str, Any] = {
        "format": FORMAT,
        "database": database,
        "recipe": asdict(settings),
        "model_digest": model_digest,
        "photos": [asdict(photo) for photo in photos],
    }
    columns = [arrow.array(names, arrow.string()), *(arrow.array(c) for c in frames.T.copy())]
    table = arrow.table([*columns, arrow.array(ids)], names=list(COLUMNS))
    table = table.replace_schema_metadata({KEY: json.dumps(about).encode()})
    with replacing(file) as fresh:
        parquet.write_table(table, fresh)
