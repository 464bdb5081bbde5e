"""Columns of pandas' HDF5 files, read with h5py alone.

pandas reads such a file by unpickling parts of it, and whoever wrote the file decides what that runs. Here numbers
and fixed-width text are read as they lie; a column of pickled objects is refused. The names of a table's columns are
the one thing that pandas keeps only as a pickle: a list of text, of which the text is taken and anything else refused.
"""

import pickletools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcate.errors import DataError

_CHUNK = 50_000  # rows read at a time, all columns of a block together
_LISTS = {"PROTO", "FRAME", "MARK", "LIST", "EMPTY_LIST", "APPEND", "APPENDS", "PUT", "BINPUT", "MEMOIZE", "STOP"}
_TEXTS = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "STRING"}


def fixed_columns(group: Any, names: Sequence[Any]) -> dict[Any, np.ndarray]:
    """Numeric columns of a frame in the format `fixed`, by name (a tuple where names have levels)."""
    found = {}
    for block in range(int(group.attrs["nblocks"])):
        levels = _axis(group, f"block{block}_items").values()
        items = list(zip(*levels, strict=True)) if len(levels) > 1 else list(next(iter(levels)))
        wanted = [name for name in names if name in items]
        if wanted:
            values = _plain(group[f"block{block}_values"], "fiub")
            positions = [items.index(name) for name in wanted]
            chunks = [values[start : start + _CHUNK][:, positions] for start in range(0, len(values), _CHUNK)]
            found.update(zip(wanted, np.concatenate(chunks).T, strict=True))
    missing = [" ".join(name) if isinstance(name, tuple) else name for name in names if name not in found]
    if missing:
        raise DataError(f"the table {_name(group)} lacks the columns {', '.join(missing)}")
    return found


def fixed_rows(group: Any) -> dict[str, np.ndarray]:
    """The levels of the row index, by name."""
    return _axis(group, "axis1")


def table_columns(group: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a frame in the format `table`: numbers, or text where pandas kept text or categories."""
    table, found = group["table"], {}
    for field in table.dtype.names:
        block = names_in_pickle(bytes(table.attrs[f"{field}_kind"])) if field != "index" else []
        for name in set(block) & set(names):
            cells = np.asarray(_plain(table, "V")[field])
            cells = cells if cells.ndim == 1 else cells[:, block.index(name)]
            if bytes(table.attrs[f"{field}_meta"]) == b"category":
                cells = _labelled(cells, _plain(group[f"meta/{field}/meta/table"], "V")["values"])
            found[name] = _text(cells)
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(f"the table {_name(group)} lacks the columns {', '.join(missing)}")
    return found


def names_in_pickle(pickled: bytes) -> list[str]:
    """The texts of a pickled list of texts, from its opcodes; nothing is built or called."""
    texts = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name in _TEXTS:
            texts.append(argument)
        elif opcode.name not in _LISTS:
            raise DataError("the file holds a pickled object where a list of names should be; it is not read")
    return texts


def _axis(group: Any, axis: str) -> dict[str, np.ndarray]:
    """The levels of an index by name, each as long as the axis."""
    if bytes(group.attrs[f"{axis}_variety"]) == b"regular":
        return {axis: _text(_plain(group[axis], "fiubS")[:])}
    levels = {}
    for number in range(int(group.attrs[f"{axis}_nlevels"])):
        level, labels = group[f"{axis}_level{number}"], _plain(group[f"{axis}_label{number}"], "iu")
        levels[bytes(level.attrs["name"]).decode()] = _labelled(labels[:], _plain(level, "fiubS")[:])
    return levels


def _labelled(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The label of each code; a missing one (code −1) is empty text, or NaN among numbers."""
    labels = _text(labels)
    missing = np.array([""], dtype=object) if labels.dtype == object else np.array([np.nan])
    return np.concatenate([labels, missing])[codes] if (codes < 0).any() else labels[codes]


def _text(cells: np.ndarray) -> np.ndarray:
    return np.array([cell.decode() for cell in cells], dtype=object) if cells.dtype.kind == "S" else cells


def _plain(dataset: Any, kinds: str) -> Any:
    """The dataset, if its cells are of plain kinds: never objects, which pandas would unpickle."""
    if dataset.dtype.kind not in kinds:
        raise DataError(f"the table {_name(dataset)} holds pickled objects or cells of another kind; it is not read")
    return dataset


def _name(node: Any) -> str:
    return repr(node.name.strip("/"))
