"""Modules and names of SciPy, scikit-learn and Pillow that have gone, where these packages are installed."""

from __future__ import annotations

import importlib.util
import math
from types import ModuleType
from typing import Any

import numpy as np

from flowstone.compat.older_python.late_modules import add_missing, complete, replace

__all__ = ["install"]


# ---- scipy.misc


def _image() -> Any:
    return importlib.import_module("PIL.Image")


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> Any:
    """The array as uint8, its range (or cmin to cmax) spread from low to high. ValueError for bad limits."""
    if data.dtype == np.uint8:
        return data
    if high > 255 or low < 0 or high < low:
        raise ValueError("`low` and `high` must lie in 0 to 255, in this order.")
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    if cmax < cmin:
        raise ValueError("`cmax` should be larger than `cmin`.")
    scale = (high - low) / ((cmax - cmin) or 1)
    return (np.clip((data - cmin) * scale + low, low, high) + 0.5).astype(np.uint8)


def toimage(arr: Any, high: int = 255, low: int = 0, cmin: Any = None, cmax: Any = None, pal: Any = None,
            mode: Any = None, channel_axis: Any = None) -> Any:  # fmt: skip
    """The array as a picture of Pillow: grey [height, width], or colours in 3 or 4 channels.

    Raises ValueError for arrays of other shapes.
    """
    data = np.asarray(arr)
    if data.ndim == 3:
        axis = channel_axis
        if axis is None:
            axis = next((i for i in (2, 0, 1) if data.shape[i] in (3, 4)), None)
        if axis is None or data.shape[axis] not in (3, 4):
            raise ValueError("'arr' does not have a suitable array shape for any mode.")
        data = np.moveaxis(data, axis, 2)
    elif data.ndim != 2:
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    if mode == "F":
        return _image().fromarray(data.astype(np.float32))
    picture = _image().fromarray(np.ascontiguousarray(bytescale(data, cmin, cmax, high, low)))
    return picture if mode is None or picture.mode == mode else picture.convert(mode)


def fromimage(im: Any, flatten: bool = False, mode: Any = None) -> Any:
    """A picture of Pillow as an array; grey floats if it is flattened."""
    if mode is not None and im.mode != mode:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im.convert("F") if flatten else im)


def imread(name: Any, flatten: bool = False, mode: Any = None) -> Any:
    """The picture in a file as an array [height, width] or [height, width, channels] of uint8."""
    with _image().open(name) as picture:
        return fromimage(picture, flatten, mode)


def imsave(name: Any, arr: Any, format: Any = None) -> None:
    """Writes an array as a picture; the file's name says of which kind."""
    picture = toimage(arr, channel_axis=2)
    picture.save(name) if format is None else picture.save(name, format)


_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: Any = None) -> Any:
    """An array as a picture of another size, as uint8.

    `size`: percent (int), a factor (float), or (height, width).
    """
    picture = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        wanted = tuple((np.array(picture.size) * (size / 100.0)).astype(int))
    elif isinstance(size, (float, np.floating)):
        wanted = tuple((np.array(picture.size) * size).astype(int))
    else:
        wanted = (size[1], size[0])
    return fromimage(picture.resize(tuple(int(side) for side in wanted), resample=_FILTERS[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> Any:
    """An array as a picture turned by an angle in degrees, against the clock."""
    filters = {**_FILTERS, "lanczos": 3}
    return fromimage(toimage(arr).rotate(angle, resample=filters[interp]))


def _fill_misc(module: ModuleType) -> None:
    """`scipy.misc`: pictures by Pillow, sums and numbers by SciPy."""
    special = importlib.import_module("scipy.special")
    pictures = (bytescale, fromimage, imread, imresize, imrotate, imsave, toimage)
    add_missing(module, {function.__name__: function for function in pictures})
    names = ("comb", "factorial", "factorial2", "factorialk", "logsumexp")
    add_missing(module, {name: getattr(special, name) for name in names})


# ---- others


def _fill_pil(module: ModuleType) -> None:
    filters = getattr(module, "Resampling", module)
    add_missing(module, {"ANTIALIAS": filters.LANCZOS, "LINEAR": filters.BILINEAR, "CUBIC": filters.BICUBIC})


def _fill_moved(name: str) -> Any:
    def fill(module: ModuleType) -> None:
        found = importlib.import_module(name)
        add_missing(module, {key: value for key, value in vars(found).items() if not key.startswith("__")})

    return fill


def _fill_if_moved(name: str) -> Any:
    def fill(module: ModuleType) -> None:
        if importlib.util.find_spec(name) is not None:
            _fill_moved(name)(module)

    return fill


def _fill_scipy(module: ModuleType) -> None:
    """The functions that `scipy` itself had of NumPy's."""
    names = (
        "array",
        "ones",
        "zeros",
        "exp",
        "log",
        "sqrt",
        "mean",
        "sum",
        "arange",
        "linspace",
        "dot",
        "randn",
    )
    add_missing(module, {name: getattr(np, name) for name in names if hasattr(np, name)})
    add_missing(module, {"pi": math.pi, "nan": np.nan, "inf": np.inf})


def _fill_six(module: ModuleType) -> None:
    """SciPy's own copy of `six`, in which the new names of built-in functions stood, too."""
    _fill_moved("six")(module)
    add_missing(module, {"xrange": range, "callable": callable})


_MOVED = {  # modules of SciPy that have a name with an underscore now; the old ones lack what is not public
    "fftpack": ("basic", "helper", "realtransforms"),
    "interpolate": ("fitpack", "interpolate"),
    "linalg": ("basic", "decomp"),
    "ndimage": ("filters", "interpolation", "measurements", "morphology"),
    "optimize": ("lbfgsb", "linesearch", "optimize"),
    "signal": ("signaltools", "wavelets"),
    "sparse": ("base", "coo", "csc", "csr", "lil"),
}


def _fill_sparse(module: ModuleType) -> None:
    """Matrices' attributes for the dense array and the adjoint, which SciPy 1.14 has no more."""
    matrix: Any = module.spmatrix
    for name, value in (("A", lambda self: self.toarray()), ("H", lambda self: self.conj().transpose())):
        if not hasattr(matrix, name):
            setattr(matrix, name, property(value))


def install() -> None:
    """Has these modules and names found when a program imports them."""
    complete("scipy", _fill_scipy)
    complete("scipy.misc", _fill_misc)
    replace("scipy.misc", _fill_misc)
    replace("scipy._lib.six", _fill_six)
    for package, names in _MOVED.items():
        for name in names:
            moved = f"scipy.{package}._{name}"
            complete(f"scipy.{package}.{name}", _fill_if_moved(moved))
            replace(f"scipy.{package}.{name}", _fill_moved(moved))
    complete("scipy.sparse", _fill_sparse)
    complete("PIL.Image", _fill_pil)
    replace("sklearn.cross_validation", _fill_moved("sklearn.model_selection"))
    replace("sklearn.grid_search", _fill_moved("sklearn.model_selection"))
    replace("sklearn.externals", lambda module: None)
    replace("sklearn.externals.joblib", _fill_moved("joblib"))
    replace("sklearn.externals.six", _fill_moved("six"))
