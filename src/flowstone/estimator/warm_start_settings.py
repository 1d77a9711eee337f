"""`WarmStartSettings`: the checkpoint that a model's first training begins with."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import flowstone as tf

__all__ = ["VocabInfo", "WarmStartSettings", "warm_start_settings"]

VocabInfo = tf.train.VocabInfo
_Fields = namedtuple(
    "_Fields",
    [
        "ckpt_to_initialize_from",
        "vars_to_warm_start",
        "var_name_to_vocab_info",
        "var_name_to_prev_var_name",
    ],
)


class WarmStartSettings(_Fields):
    """What `tf.train.warm_start` gets.

    Args:
        ckpt_to_initialize_from: a checkpoint, or a folder of them.
        vars_to_warm_start: a regular expression, a list of them, of names or of variables, or None.
        var_name_to_vocab_info: VocabInfos by variables' names.
        var_name_to_prev_var_name: names in the checkpoint, where they are others.

    Raises ValueError without a checkpoint.
    """

    __slots__ = ()

    def __new__(
        cls, ckpt_to_initialize_from: Any, vars_to_warm_start: Any = ".*", var_name_to_vocab_info: Any = None,
        var_name_to_prev_var_name: Any = None,
    ) -> WarmStartSettings:  # fmt: skip
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def warm_start_settings(given: Any) -> WarmStartSettings | None:
    """The settings of an Estimator's `warm_start_from`: None, a path (also of a SavedModel), or settings.

    ValueError for other things.
    """
    if given is None or isinstance(given, WarmStartSettings):
        return given
    if not isinstance(given, (str, bytes)):
        raise ValueError(
            "warm_start_from must be a string or a WarmStartSettings, instead got " + str(type(given))
        )
    path = given.decode() if isinstance(given, bytes) else given
    variables = f"{path.rstrip('/')}/{tf.saved_model.constants.VARIABLES_DIRECTORY}"
    inside = f"{variables}/{tf.saved_model.constants.VARIABLES_FILENAME}"
    if tf.gfile.Exists(f"{inside}.index"):
        tf.logging.info("Warm-starting from a SavedModel")
        return WarmStartSettings(ckpt_to_initialize_from=inside)
    return WarmStartSettings(ckpt_to_initialize_from=path)
