"""The models of a reconstruction as files: COLMAP's folders, a picture and a page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hiernorm._files import remove_file, replacing_folder
from hiernorm.adapters.colmap import map_database
from hiernorm.adapters.disk_space import require_space
from hiernorm.vision.drawing import write_picture
from hiernorm.vision.sparse_model import SparseModel, draw_model, write_model_page

SPARSE = "sparse"
PICTURE = "model.png"
PAGE = "model.html"
MAPPED = "sparse.mapped"
"""Where COLMAP writes, in its own order."""


def map_into(folder: Path, database: Path, photos: Path, threads: int | None) -> list[Any]:
    """Map a database and write its models, the largest as ``sparse/0``.

    COLMAP numbers models in the order in which it began them, and programs open ``sparse/0``.
    ``sparse`` is replaced as a whole. Picture and page are removed before it and written after it,
    so they never show another model. Without a model everything stays as it is.

    Parameters
    ----------
    folder
        Folder of the result.
    database
        A verified database.
    photos
        The folder of its images.
    threads
        As for :func:`hiernorm.adapters.colmap.map_database`.

    Returns
    -------
    Reconstructions of pycolmap, the largest first.
    """
    mapped = folder / MAPPED
    shutil.rmtree(mapped, ignore_errors=True)  # of a process that was killed
    try:
        models = map_database(database, photos, mapped, threads=threads)
        size = sum(file.stat().st_size for file in mapped.rglob("*") if file.is_file())
    finally:
        shutil.rmtree(mapped, ignore_errors=True)
    if not models:
        return []
    require_space(folder / SPARSE, size, "COLMAP")  # it would write a part and say nothing
    shape = SparseModel.from_pycolmap(models[0])
    picture = draw_model(shape)
    with replacing_folder(folder / SPARSE) as fresh:
        for number, model in enumerate(models):
            (fresh / str(number)).mkdir()
            model.write(str(fresh / str(number)))
        for name in (PICTURE, PAGE):
            remove_file(folder / name)
    write_picture(folder / PICTURE, picture)
    write_model_page(folder / PAGE, shape, photos.resolve().name)
    return models
