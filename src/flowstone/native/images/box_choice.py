"""The greedy choice of boxes by machine code (`choice_code.py`), as functions of tensors.

Boxes and scores are float32 on a host. The code is compiled on a thread when it is first asked for
(`box_choice`); what is called before it is there waits. One thread does all of a choice, for each box
depends on those before it; threads share the choices in many images and classes.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import sleef_name
from flowstone.native.images.choice_code import PLACES, WORDS, choice_code

__all__ = ["ChoiceCode", "box_choice"]

_Numbers = ctypes.c_float * 3


class ChoiceCode:
    """Both choices; the soft one is compiled when it is first called."""

    def choose(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
    ) -> torch.Tensor:
        """The numbers of at most `limit` boxes whose overlaps are at most `threshold`; int64."""
        return self._call("choose", boxes, scores, limit, _Numbers(threshold, least), {})

    def choose_each(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """In each class of each image: the numbers, [batch, classes, at most `limit`], and how many."""
        boxes, scores = boxes.contiguous(), scores.contiguous()
        batch, count, classes = scores.shape
        limit, choices, lanes = min(limit, count), batch * classes, host.lanes()
        threads = torch.get_num_threads() if choices * count >= machine.current().profile.team_starts else 1
        room = (-(-limit // lanes) + 1) * lanes
        out = torch.empty((batch, classes, limit), dtype=torch.int64)
        found = torch.zeros((batch, classes), dtype=torch.int64)
        scratch = torch.empty(threads * (count + 5 * room // 2), dtype=torch.int64)
        words = {
            "threads": threads, "count": count, "limit": limit, "room": room, "box_step": boxes.stride(1),
            "score_step": classes, "classes": classes, "choices": choices, "box_image": boxes.stride(0),
            "box_class": 4 if boxes.shape[2] > 1 else 0, "score_image": scores.stride(0),
        }  # fmt: skip
        numbers = _Numbers(threshold, least)
        places: dict[str, torch.Tensor | int] = {
            "numbers": ctypes.addressof(numbers), "boxes": boxes, "scores": scores, "heap": scratch,
            "chosen": scratch.data_ptr() + 8 * threads * count, "out": out, "found": found,
        }  # fmt: skip
        _library(False).call("choose_each", words, places)
        return out, found

    def choose_softly(
        self, boxes: torch.Tensor, scores: torch.Tensor, limit: int, least: float, sigma: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the boxes and their lowered scores."""
        seen = torch.zeros(len(scores), dtype=torch.int64)
        lowered = torch.empty(min(limit, len(scores)))
        extra = {"seen": seen, "lowered": lowered}
        found = self._call("choose_softly", boxes, scores, limit, _Numbers(0, least, -0.5 / sigma), extra)
        return found, lowered[: len(found)]

    def _call(
        self,
        name: str,
        boxes: torch.Tensor,
        scores: torch.Tensor,
        limit: int,
        numbers: ctypes.Array[ctypes.c_float],
        extra: dict[str, torch.Tensor],
    ) -> torch.Tensor:
        count, lanes = scores.shape[0], host.lanes()
        limit = min(limit, count)
        out = torch.empty(limit, dtype=torch.int64)
        if not limit:
            return out
        boxes = boxes if boxes.stride(1) == 1 else boxes.contiguous()
        room = (-(-limit // lanes) + 1) * lanes  # what begins at any place is a whole vector
        found = ctypes.c_int64()
        scratch = torch.empty(count + 5 * room // 2, dtype=torch.int64)
        words = {
            "count": count, "limit": limit, "room": room, "box_step": boxes.stride(0),
            "score_step": scores.stride(0),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "numbers": ctypes.addressof(numbers), "boxes": boxes, "scores": scores,
            "heap": scratch, "chosen": scratch.data_ptr() + 8 * count, "out": out,
            "found": ctypes.addressof(found), **extra,
        }  # fmt: skip
        _library(name == "choose_softly").call(name, words, places)
        return out[: found.value]


@functools.cache
def _library(softly: bool) -> CodeLibrary:
    places = {name: taken for name, taken in PLACES.items() if (name == "choose_softly") == softly}
    return CodeLibrary(lambda: choice_code(softly, host.lanes()), WORDS, places)


@functools.cache
def _code() -> ChoiceCode:
    _library(False)
    return ChoiceCode()


def box_choice(softly: bool) -> ChoiceCode | None:
    """The functions; None if there is no native tier, or for the soft one no exponential function."""
    if not flags.NATIVE or host.reason() or (softly and not host.has(sleef_name("exp", "float32"))):
        return None
    return _code()
