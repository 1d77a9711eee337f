"""The names of what a time series model is given and gives back."""

from __future__ import annotations

__all__ = [
    "FilteringFeatures",
    "FilteringResults",
    "PredictionFeatures",
    "PredictionResults",
    "SavedModelLabels",
    "State",
    "Times",
    "TrainEvalFeatures",
    "Values",
]


class State:
    """A model's state: a structure of tensors, or one entry ``model_state_NN`` a tensor in a signature."""

    STATE_TUPLE = "start_tuple"
    STATE_PREFIX = "model_state"


class Times:
    """Integers [batch, window]."""

    TIMES = "times"


class Values:
    """Observations [batch, window, features]."""

    VALUES = "values"


class TrainEvalFeatures(Times, Values):
    """What training and evaluation take."""


class PredictionFeatures(Times, State):
    """What prediction takes."""


class FilteringFeatures(Times, Values, State):
    """What filtering takes: the state may be left out."""


class PredictionResults(Times):
    """What prediction gives, beside the model's own outputs."""


class FilteringResults(Times, State):
    """What evaluation gives, beside the model's own outputs."""


class SavedModelLabels:
    """The signatures of an exported model."""

    PREDICT = "serving_default"
    FILTER = "filter"
    COLD_START_FILTER = "cold_start_filter"
