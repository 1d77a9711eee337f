"""The incomplete beta function's continued fraction, the incomplete gamma function's series with its
derivative, and the Hurwitz zeta function, by machine code (`incomplete_function_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import BetaFraction, GammaSeries, ZetaFunction
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import sleef_name
from flowstone.native.numerics.incomplete_function_code import PLACES, WORDS, incomplete_function_code

__all__ = ["beta_fraction", "gamma_series", "zeta"]

_SERIES = ("fraction", "series")
_ZETAS = ("zeta", "short_zeta")
_SHOWN = {"zeta": 2.0**-53, "short_zeta": 2.0**-40}  # of zeta, a part that no result shows
_WORK = 500  # of an element, in additions: some ten steps with six quotients each, or forty with one


def beta_fraction() -> BetaFraction | None:
    """The function; None if there is no native tier."""
    if not flags.NATIVE or host.reason():
        return None
    return functools.partial(_fraction, _library(_SERIES))


@functools.cache
def _library(names: tuple[str, ...]) -> CodeLibrary:
    places = {name: PLACES[name] for name in names}
    return CodeLibrary(lambda: incomplete_function_code(host.lanes() // 2, names), WORDS, places)


def gamma_series() -> GammaSeries | None:
    """The function; None if there is no native tier."""
    if not flags.NATIVE or host.reason():
        return None
    return functools.partial(_series, _library(_SERIES))


def zeta(is_short: bool) -> ZetaFunction | None:
    """The function; None if there is no native tier, or no SLEEF. `is_short`: for results in float32."""
    if not flags.NATIVE or host.reason():
        return None
    if not all(host.has(sleef_name(each, "float64")) for each in ("pow", "exp", "log")):
        return None
    return functools.partial(_zeta, _library(_ZETAS), _ZETAS[is_short])


def _fraction(
    library: CodeLibrary, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, precise: float, most: int
) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=torch.float64)
    _call(library, "fraction", {"a": a, "b": b, "x": x, "out": out}, precise, most)
    return out


def _series(
    library: CodeLibrary, a: torch.Tensor, x: torch.Tensor, precise: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    total, slope = (torch.empty(x.shape, dtype=torch.float64) for _ in range(2))
    _call(library, "series", {"a": a, "x": x, "total": total, "slope": slope}, precise, most)
    return total, slope


def _zeta(library: CodeLibrary, name: str, x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=torch.float64)
    _call(library, name, {"x": x, "q": q, "out": out}, _SHOWN[name], 0)
    return out


def _call(
    library: CodeLibrary, name: str, tensors: dict[str, torch.Tensor], precise: float, most: int
) -> None:
    count, limit = tensors["x"].numel(), ctypes.c_double(precise)
    has_team = count * _WORK >= machine.current().profile.native_team
    words = {"threads": torch.get_num_threads() if has_team else 1, "count": count, "most": most}
    dense = {place: x.contiguous() for place, x in tensors.items()}
    library.call(name, words, {"precise": ctypes.addressof(limit), **dense})
