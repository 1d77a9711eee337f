"""Asking an exported model: filtering of values, from the start or from a state, and predictions that go on.

A program loads the model with `tf.saved_model.loader.load` and hands on what that gives as `signatures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.contrib.timeseries.feature_keys import SavedModelLabels, State, Times
from flowstone.contrib.timeseries.head import state_to_dictionary
from flowstone.contrib.timeseries.model_utils import canonicalize_times_or_steps_from_output
from flowstone.contrib.timeseries.readers import canonical_arrays

__all__ = ["cold_start_filter", "filter_continuation", "predict_continuation"]


def predict_continuation(
    continue_from: Mapping[str, Any],
    signatures: Any,
    session: Any,
    steps: int | None = None,
    times: Any = None,
    exogenous_features: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Predictions by name, for times after those of `continue_from`.

    Args:
        continue_from: what a filter below, or `Estimator.evaluate`, gave.
        signatures: the MetaGraphDef of the loaded model.
        session: where the model is loaded.
        steps: how many times follow the last one.
        times: the times themselves, [times] or [batch, times].
        exogenous_features: arrays [batch, times, …] by name.

    Raises ValueError unless one of `steps` and `times` is given, or for times that are not later.
    """
    asked = canonicalize_times_or_steps_from_output(times, steps, continue_from)
    features = {Times.TIMES: asked, **(exogenous_features or {})}
    return _ask(SavedModelLabels.PREDICT, signatures, session, features, continue_from)


def cold_start_filter(signatures: Any, session: Any, features: Mapping[str, Any]) -> dict[str, Any]:
    """The state after `features`, which begin in the model's start state, and their times."""
    return _ask(
        SavedModelLabels.COLD_START_FILTER,
        signatures,
        session,
        canonical_arrays(features, require_single_batch=False),
    )


def filter_continuation(
    continue_from: Mapping[str, Any], signatures: Any, session: Any, features: Mapping[str, Any]
) -> dict[str, Any]:
    """The state after `features`, which begin in that of `continue_from`, and their times."""
    arrays = canonical_arrays(features, require_single_batch=False)
    return _ask(SavedModelLabels.FILTER, signatures, session, arrays, continue_from)


def _ask(
    label: str,
    signatures: Any,
    session: Any,
    features: Mapping[str, Any],
    continue_from: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    signature = signatures.signature_def[label]
    state = continue_from or {}
    if State.STATE_TUPLE in state:
        state = state_to_dictionary(state[State.STATE_TUPLE])
    given = {**{name: value for name, value in state.items() if name != Times.TIMES}, **features}
    graph = session.graph
    feeds = {graph.as_graph_element(signature.inputs[name].name): value for name, value in given.items()}
    fetches = {name: graph.as_graph_element(tensor.name) for name, tensor in signature.outputs.items()}
    found: dict[str, Any] = session.run(fetches, feed_dict=feeds)
    found[Times.TIMES] = features[Times.TIMES]
    return found
