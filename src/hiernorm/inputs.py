"""Numbers of every kind that people have, as NumPy arrays: shared where that is possible.

===========================  ======================================================================
what comes                   what is made of it
===========================  ======================================================================
NumPy, buffers               as it is; masked arrays only if no value is masked
torch                        shared, also if it requires a gradient; bfloat16 becomes float32
Arrow, polars                a column of lists of one length, shared if it is one chunk
pandas                       a column of arrays is stacked; a frame of numbers is its values
DLPack                       shared, if it is in the memory of the processor
lists of any of these        stacked
===========================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from hiernorm.array_types import AnyArray
from hiernorm.extras import import_extra

VECTORS = "vectors"
"""The name of the column of vectors, if there are several columns of lists."""
CPU_DEVICES = (1, 3, 13)
"""DLPack's numbers of memory that the processor reads: CPU, and CUDA host and managed memory."""
ARROW_EXTRA = "parquet"


def is_array(values: Any) -> bool:
    """Whether ``values`` is an array or a table of some library, not an iterator of such."""
    names = ("__array__", "__array_interface__", "__dlpack__", "__arrow_c_array__")
    if any(hasattr(values, name) for name in names):
        return True
    return hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__next__")


def to_numpy(name: str, values: Any) -> AnyArray:
    """``values`` as a NumPy array, without a copy if its library allows that.

    Parameters
    ----------
    name
        What the values are, for errors.
    values
        See the table above.

    Raises
    ------
    TypeError, ValueError
        If there are no numbers, values are missing, or rows have different lengths.

    Examples
    --------
    >>> import pyarrow
    >>> to_numpy("vectors", pyarrow.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    library = type(values).__module__.split(".")[0]
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} have masked values: give every vector all of its numbers")
    if isinstance(values, np.ndarray):
        return _whole_rows(name, np.asarray(values))
    if library == "torch":
        return _from_torch(name, values)
    if library == "pandas":
        return _from_pandas(name, values)
    if library == "polars" and hasattr(values, "collect"):
        raise TypeError(f"{name} are a query of polars that has not run: give .collect()")
    if library == "scipy" and hasattr(values, "toarray"):
        raise TypeError(f"{name} are sparse, dense ones are searched: give .toarray()")
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _from_arrow(name, values)
    if hasattr(values, "__array__") or hasattr(values, "__array_interface__"):
        return _whole_rows(name, np.asarray(values))
    if hasattr(values, "__dlpack__"):
        return _from_dlpack(name, values)
    if isinstance(values, (list, tuple)) and values and is_array(values[0]):
        return _stack(name, values)
    if values is None or isinstance(values, (bytes, dict, frozenset, set, str)):
        raise TypeError(
            f"{name} must be numbers (float32 is used) in an array or a list, "
            f"got {type(values).__name__}"
        )
    try:
        return _whole_rows(name, np.asarray(values))
    except ValueError:
        _refuse_lengths(name, values)


def _from_torch(name: str, tensor: Any) -> AnyArray:
    torch = import_extra("torch", extra="train")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name} are sparse, dense ones are searched: give .to_dense()")
    if tensor.is_meta:
        raise TypeError(f"{name} are on torch's meta device, which has no values")
    tensor = tensor.detach()
    known = (torch.float64, torch.float32, torch.float16)
    if tensor.is_floating_point() and tensor.dtype not in known:
        tensor = tensor.float()  # bfloat16 and smaller, which NumPy has not
    found: AnyArray = tensor.cpu().resolve_conj().resolve_neg().numpy()
    return found


def _from_dlpack(name: str, values: Any) -> AnyArray:
    kind, number = values.__dlpack_device__()
    if kind not in CPU_DEVICES:
        raise TypeError(
            f"{name} are on another device (DLPack type {int(kind)}, number {number}): copy them "
            "to the memory of the processor first"
        )
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError) as error:
        raise TypeError(
            f"{name} cannot be read by DLPack ({error}): convert them to NumPy or to float32 first"
        ) from None


def _from_pandas(name: str, values: Any) -> AnyArray:
    if hasattr(values, "columns"):
        if len(values.columns) and all(dtype.kind in "fiub" for dtype in values.dtypes):
            if values.isna().to_numpy().any():
                raise ValueError(f"{name} have missing values")
            kinds = [getattr(dtype, "numpy_dtype", dtype) for dtype in values.dtypes]
            found: AnyArray = values.to_numpy(dtype=np.result_type(*kinds))
            return found
        lists = [c for c in values.columns if _holds_rows(values[c])]
        values = values[_column_of_vectors(name, lists)]
    if str(values.dtype).startswith(("list<", "fixed_size_list<", "large_list<")):
        return _from_arrow(name, values)
    return _whole_rows(name, values.to_numpy())


def _holds_rows(column: Any) -> bool:
    """Whether a column of pandas has arrays or lists: text is of the same dtype."""
    if column.dtype.kind != "O":
        return False
    first = next(iter(column.dropna()), None)
    return is_array(first) or isinstance(first, (list, tuple))


def _from_arrow(name: str, values: Any) -> AnyArray:
    arrow = import_extra("pyarrow", extra=ARROW_EXTRA)
    if isinstance(values, arrow.RecordBatch) or hasattr(values, "columns"):
        table = values if isinstance(values, arrow.RecordBatch) else arrow.table(values)
        if table.num_columns and not any(_is_list(kind) for kind in table.schema.types):
            return np.stack([_from_arrow(name, column) for column in table.columns], axis=1)
        lists = [field.name for field in table.schema if _is_list(field.type)]
        values = table.column(_column_of_vectors(name, lists))
    elif not isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        stream = hasattr(values, "__arrow_c_stream__")
        values = arrow.chunked_array(values) if stream else arrow.array(values)
    chunks = values.chunks if isinstance(values, arrow.ChunkedArray) else [values]
    parts = [_from_chunk(name, chunk) for chunk in chunks if len(chunk)]
    if not parts:
        return np.empty((0, getattr(values.type, "list_size", 0)), np.float32)
    if len({part.shape[1:] for part in parts}) > 1:
        _refuse_lengths(name, [row for part in parts for row in part])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_list(kind: Any) -> bool:
    types = import_extra("pyarrow", extra=ARROW_EXTRA).types
    kind = getattr(kind, "storage_type", kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return True
    return _is_list_view(kind)


def _is_list_view(kind: Any) -> bool:
    types = import_extra("pyarrow", extra=ARROW_EXTRA).types
    names = ("is_list_view", "is_large_list_view")  # from pyarrow 16 on
    return any(getattr(types, name, lambda _: False)(kind) for name in names)


def _from_chunk(name: str, chunk: Any) -> AnyArray:
    """An Arrow array of numbers, or of lists of numbers that have one length."""
    types = import_extra("pyarrow", extra=ARROW_EXTRA).types
    chunk = getattr(chunk, "storage", chunk)  # of an extension, such as a tensor
    if chunk.null_count:
        row = int(np.argmax(chunk.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"{name} {row} is missing (null)")
    if _is_list(chunk.type):
        inner, rows = chunk.flatten(), len(chunk)
        if not types.is_fixed_size_list(chunk.type):
            is_view = _is_list_view(chunk.type)
            lengths = chunk.sizes.to_numpy() if is_view else np.diff(chunk.offsets.to_numpy())
            if (lengths != lengths[0]).any():
                _refuse_lengths(name, [range(length) for length in lengths])
        found = _from_chunk(f"a value of {name}", inner)
        return found.reshape(rows, -1, *found.shape[1:]) if len(found) else found.reshape(rows, 0)
    if not types.is_primitive(chunk.type) or types.is_temporal(chunk.type):
        raise TypeError(f"{name} must be numbers (float32 is used), got Arrow type {chunk.type}")
    numbers: AnyArray = chunk.to_numpy(zero_copy_only=False)
    return numbers


def _column_of_vectors(name: str, lists: Sequence[Any]) -> Any:
    if VECTORS in lists:
        return VECTORS
    if len(lists) != 1:
        found = ", ".join(str(column) for column in lists) or "none"
        raise ValueError(
            f"{name}: expected a table with a column of lists called {VECTORS!r} or a single one, "
            f"found {found}: give the column"
        )
    return lists[0]


def _whole_rows(name: str, array: AnyArray) -> AnyArray:
    """The array; rows that are objects are stacked, and bfloat16 of other libraries is widened."""
    if array.dtype.kind == "V" and array.dtype.names is None:
        try:
            return array.astype(np.float32)
        except (TypeError, ValueError):
            return array
    if array.dtype != np.object_ or array.ndim != 1:
        return array
    return _stack(name, array)


def _stack(name: str, rows: Iterable[Any]) -> AnyArray:
    parts = []
    for number, row in enumerate(rows):
        if row is None or (isinstance(row, float) and np.isnan(row)):
            raise ValueError(f"{name} {number} is missing")
        if not is_array(row) and not isinstance(row, (list, tuple)):
            raise TypeError(f"{name} {number} is {type(row).__name__}, an array was expected")
        parts.append(to_numpy(name, row))
    if not parts:
        return np.empty((0, 0), np.float32)
    if len({part.shape for part in parts}) > 1:
        _refuse_lengths(name, parts)
    return np.stack(parts)


def _refuse_lengths(name: str, rows: Any) -> NoReturn:
    """Raise ValueError that names the first row of another length."""
    lengths = [len(row) if hasattr(row, "__len__") else -1 for row in rows]
    for number, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"{name} have different lengths: number 0 has {lengths[0]} values, number "
                f"{number} has {length if length >= 0 else 'none'}"
            )
    raise ValueError(f"{name} are no array: rows have different shapes")
