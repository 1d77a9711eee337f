"""What pandas up to 0.25 had and pandas 1 to 3 have no more, where pandas is installed.

Names and methods that have gone, arguments that are refused, statistics that passed over columns without
numbers, and arrays of `values` that a program may change. Chained assignment, as in ``df["a"][0] = 1``, stays
without an effect in pandas 3.
"""

from __future__ import annotations

import datetime
import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python.late_modules import add_missing, complete

__all__ = ["install"]

_STATISTICS = (
    "corr",
    "cov",
    "kurt",
    "mean",
    "median",
    "prod",
    "quantile",
    "sem",
    "skew",
    "std",
    "sum",
    "var",
)
_ROLLING = (
    "apply",
    "corr",
    "count",
    "cov",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "skew",
    "std",
    "sum",
    "var",
)


class _Positions:
    """`frame.ix`: by labels; by positions where the labels are no numbers."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def _places(self, key: Any) -> tuple[Any, Any]:
        """`loc` or `iloc`, and the key for it."""
        keys = list(key) if isinstance(key, tuple) else [key]
        by_label = [_is_label(axis, each) for axis, each in zip(self._frame.axes, keys)]
        if all(by_label):
            return self._frame.loc, key
        if not any(by_label):
            return self._frame.iloc, key
        for i, (axis, is_label) in enumerate(zip(self._frame.axes, by_label)):
            keys[i] = keys[i] if is_label else axis[keys[i]]
        return self._frame.loc, tuple(keys)

    def __getitem__(self, key: Any) -> Any:
        indexer, places = self._places(key)
        return indexer[places]

    def __setitem__(self, key: Any, value: Any) -> None:
        indexer, places = self._places(key)
        indexer[places] = value


def _is_label(axis: Any, key: Any) -> bool:
    """Whether a key of `ix` names labels of an axis, not positions."""
    if axis.dtype.kind in "iu":
        return True
    if isinstance(key, slice):
        parts = [each for each in (key.start, key.stop) if each is not None]
        return bool(parts) and not all([isinstance(each, (int, np.integer)) for each in parts])
    first = key[0] if isinstance(key, (list, tuple, np.ndarray)) and len(key) else key
    return isinstance(first, (bool, np.bool_)) or not isinstance(first, (int, np.integer))


# ---- methods


def _pandas() -> Any:
    return importlib.import_module("pandas")


def _as_matrix(self: Any, columns: Any = None) -> Any:
    return self.values if columns is None else self[columns].values


def _append(self: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False,
            sort: Any = False) -> Any:  # fmt: skip
    pandas = _pandas()
    if isinstance(other, (dict, pandas.Series)) and self.ndim == 2:
        row = pandas.Series(other) if isinstance(other, dict) else other
        if row.name is None and not ignore_index:
            raise TypeError("Can only append a Series if ignore_index=True or if the Series has a name")
        other = row.to_frame().T.infer_objects()
    others = list(other) if isinstance(other, (list, tuple)) else [other]
    return pandas.concat([self, *others], ignore_index=ignore_index, verify_integrity=verify_integrity)


def _get_value(self: Any, index: Any, col: Any = None, takeable: bool = False) -> Any:
    indexer = self.iat if takeable else self.at
    return indexer[index] if self.ndim == 1 else indexer[index, col]


def _set_value(self: Any, index: Any, col: Any, value: Any = None, takeable: bool = False) -> Any:
    indexer = self.iat if takeable else self.at
    if self.ndim == 1:
        indexer[index] = col
    else:
        indexer[index, col] = value
    return self


def _sort(self: Any, columns: Any = None, axis: int = 0, ascending: Any = True, inplace: bool = False) -> Any:
    if columns is None:
        return self.sort_index(axis=axis, ascending=ascending, inplace=inplace)
    return self.sort_values(columns, axis=axis, ascending=ascending, inplace=inplace)


def _lookup(self: Any, row_labels: Any, col_labels: Any) -> Any:
    found = [self.at[each] for each in zip(row_labels, col_labels)]
    return _pandas().Series(found, dtype=object).infer_objects().to_numpy()


def _mad(self: Any, axis: int = 0) -> Any:
    centre = self.mean(axis=axis)
    return (self - centre if self.ndim == 1 or axis == 0 else self.sub(centre, axis=0)).abs().mean(axis=axis)


def _from_csv(cls: Any, path: Any, header: Any = 0, sep: str = ",", index_col: Any = 0,
              parse_dates: Any = True, encoding: Any = None) -> Any:  # fmt: skip
    found = _pandas().read_csv(
        path, header=header, sep=sep, index_col=index_col, parse_dates=parse_dates, encoding=encoding
    )
    return found if cls._typ == "dataframe" else found.iloc[:, 0]


# ---- arguments


def _renamed(original: Any, names: dict[str, str | None]) -> Any:
    """Takes arguments by older names; None for those without an effect."""

    @functools.wraps(original)
    def called(*given: Any, **keywords: Any) -> Any:
        for old, new in names.items():
            if old in keywords:
                value = keywords.pop(old)
                if new is not None:
                    keywords.setdefault(new, value)
        return original(*given, **keywords)

    return called


def _read(original: Any) -> Any:
    """`read_csv` takes `error_bad_lines` and `squeeze`."""

    @functools.wraps(original)
    def read(*given: Any, **keywords: Any) -> Any:
        keeps_bad = keywords.pop("error_bad_lines", True)
        warns = keywords.pop("warn_bad_lines", True)
        if not keeps_bad:
            keywords.setdefault("on_bad_lines", "warn" if warns else "skip")
        squeeze = keywords.pop("squeeze", False)
        for name in (
            "tupleize_cols",
            "infer_datetime_format",
            "mangle_dupe_cols",
            "compact_ints",
            "use_unsigned",
        ):
            keywords.pop(name, None)
        found = original(*given, **keywords)
        return found.squeeze("columns") if squeeze else found

    return read


def _by_position(original: Any, *names: str) -> Any:
    """Takes arguments after the first by their places, too."""

    @functools.wraps(original)
    def called(self: Any, first: Any = None, *given: Any, **keywords: Any) -> Any:
        return original(self, first, **dict(zip(names, given)), **keywords)

    return called


def _filled(original: Any) -> Any:
    """`fillna` takes the `method` "ffill" or "bfill"."""

    @functools.wraps(original)
    def fillna(self: Any, value: Any = None, method: Any = None, **keywords: Any) -> Any:
        if method is None:
            return original(self, value, **keywords)
        return (self.ffill if method in ("ffill", "pad") else self.bfill)(**keywords)

    return fillna


def _of_numbers(original: Any) -> Any:
    """Statistics pass over columns without numbers."""

    @functools.wraps(original)
    def statistic(self: Any, *given: Any, **keywords: Any) -> Any:
        try:
            return original(self, *given, **keywords)
        except (TypeError, ValueError):
            if "numeric_only" in keywords:
                raise
            return original(self, *given, numeric_only=True, **keywords)

    return statistic


def _joined(original: Any) -> Any:
    """`concat` takes `join_axes`."""

    @functools.wraps(original)
    def concat(*given: Any, **keywords: Any) -> Any:
        axes = keywords.pop("join_axes", None)
        found = original(*given, **keywords)
        return found if axes is None else found.reindex(axes[0], axis=0 if keywords.get("axis", 0) else 1)

    return concat


def _indicators(original: Any) -> Any:
    """`get_dummies` gives numbers, not truth values."""

    @functools.wraps(original)
    def get_dummies(*given: Any, **keywords: Any) -> Any:
        if len(given) < 8 and keywords.get("dtype") is None:
            keywords["dtype"] = np.uint8
        return original(*given, **keywords)

    return get_dummies


def _changeable(original: property) -> property:
    """`values` that may be changed."""
    assert original.fget is not None
    values = original.fget

    def changeable(self: Any) -> Any:
        found = values(self)
        if isinstance(found, np.ndarray) and not found.flags.writeable:
            try:
                found.flags.writeable = True
            except ValueError:
                found = found.copy()
        return found

    return property(changeable, doc=original.__doc__)


def _rolling(name: str) -> Callable[..., Any]:
    def rolled(arg: Any, window: int, min_periods: Any = None, center: bool = False, **keywords: Any) -> Any:
        return getattr(arg.rolling(window, min_periods=min_periods, center=center), name)(**keywords)

    return rolled


# ---- all


def _add_methods(pandas: Any) -> None:
    for kind in (pandas.DataFrame, pandas.Series):
        methods: dict[str, Any] = {
            "append": _append,
            "as_matrix": _as_matrix,
            "from_csv": classmethod(_from_csv),
            "get_value": _get_value,
            "get_values": _as_matrix,
            "iteritems": kind.items,
            "ix": property(_Positions),
            "mad": _mad,
            "set_value": _set_value,
        }
        if kind is pandas.DataFrame:
            methods |= {"applymap": getattr(kind, "map", None), "lookup": _lookup, "sort": _sort}
        else:
            methods |= {
                "order": kind.sort_values,
                "sort": functools.partialmethod(kind.sort_values, inplace=True),
            }
        for name, method in methods.items():
            if not hasattr(kind, name):
                setattr(kind, name, method)
        kind.drop = _by_position(kind.drop, "axis")
        kind.fillna = _filled(kind.fillna)
        kind.to_csv = _renamed(kind.to_csv, {"line_terminator": "lineterminator"})
        kind.values = _changeable(kind.values)
    for name in _STATISTICS:
        setattr(pandas.DataFrame, name, _of_numbers(getattr(pandas.DataFrame, name)))
    groups = importlib.import_module("pandas.core.groupby").DataFrameGroupBy
    for name in ("mean", "median", "std", "var"):
        setattr(groups, name, _of_numbers(getattr(groups, name)))


def _fill(module: ModuleType) -> None:
    pandas: Any = module
    if int(pandas.__version__.split(".")[0]) >= 3:
        pandas.set_option("future.infer_string", False)
    _add_methods(pandas)
    pandas.concat, pandas.get_dummies = _joined(pandas.concat), _indicators(pandas.get_dummies)
    pandas.read_csv, pandas.read_table = _read(pandas.read_csv), _read(pandas.read_table)
    plotting = "pandas.plotting"
    add_missing(
        module,
        {
            "datetime": datetime.datetime,
            "Float64Index": functools.partial(pandas.Index, dtype=np.float64),
            "Int64Index": functools.partial(pandas.Index, dtype=np.int64),
            "np": np,
            "scatter_matrix": lambda *a, **k: importlib.import_module(plotting).scatter_matrix(*a, **k),
            "tslib": pandas._libs.tslib,
            **{f"rolling_{name}": _rolling(name) for name in _ROLLING},
        },
    )


def install() -> None:
    """Has pandas completed when a program imports it."""
    complete("pandas", _fill)
