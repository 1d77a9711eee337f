"""`model_builder`: the model function of boosted trees."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.boosted_trees import gbdt_batch, model_ops, trainer_hooks
from flowstone.contrib.learn.estimators.linear import feature_dict
from flowstone.contrib.learn.estimators.model_fn import ModelFnOps

__all__ = ["ModelBuilderOutputType", "gbdt_of", "model_builder"]


class ModelBuilderOutputType(enum.Enum):
    """What a model function returns: what `tf.contrib.learn` takes, or what `tf.estimator` takes."""

    MODEL_FN_OPS = 0
    ESTIMATOR_SPEC = 1


def gbdt_of(features: Mapping[str, Any], config: Any, params: Mapping[str, Any], name: str) -> Any:
    """The graph of the ensemble `name` on features.

    Args:
        features: tensors by name.
        config: a RunConfig.
        params: of `model_builder`.
    """
    global_step = tf.train.get_global_step()
    with tf.device(global_step.device):
        ensemble = model_ops.tree_ensemble_variable(0, "", name)
    head, weights = params["head"], params["weight_column_name"]
    return gbdt_batch.GradientBoostedDecisionTreeModel(
        is_chief=config.is_chief,
        num_ps_replicas=config.num_ps_replicas,
        ensemble_handle=ensemble,
        center_bias=params["center_bias"],
        examples_per_layer=params["examples_per_layer"],
        learner_config=params["learner_config"],
        features={key: tensor for key, tensor in features.items() if key != weights},
        logits_dimension=head.logits_dimension,
        loss_reduction=params.get("loss_reduction", tf.losses.Reduction.SUM_OVER_NONZERO_WEIGHTS),
        feature_columns=params["feature_columns"],
        use_core_columns=params.get("use_core_libs", False),
        output_leaf_index=params.get("output_leaf_index", False),
        num_quantiles=params.get("num_quantiles", 100),
    )


def _training_hooks(model: Any, params: Mapping[str, Any]) -> list[Any]:
    trees = params["num_trees"]
    if not trees:
        return []
    finalized, attempted = model.get_number_of_trees_tensor()
    count = trees + 1 if params["center_bias"] else trees
    step = params.get("override_global_step_value")
    return [trainer_hooks.StopAfterNTrees(count, attempted, finalized, step)]


def model_builder(
    features: Any,
    labels: Any,
    mode: str,
    params: Mapping[str, Any],
    config: Any,
    output_type: ModelBuilderOutputType = ModelBuilderOutputType.MODEL_FN_OPS,
) -> Any:
    """The model of boosted trees.

    Args:
        features: tensors by name, or a tensor.
        labels: of the batch, None to infer.
        mode: a ModeKeys name.
        params: `head`, `learner_config`, `examples_per_layer`, `num_trees`, `feature_columns`,
            `weight_column_name`, `logits_modifier_function`, `center_bias` and what else estimators take.
        config: a RunConfig.
        output_type: which of both is returned.

    Raises ValueError without features or configuration.
    """
    if features is None:
        raise ValueError("At least one feature must be specified.")
    if config is None:
        raise ValueError("Missing estimator RunConfig.")
    head, modify = params["head"], params.get("logits_modifier_function")
    if isinstance(features, tf.Tensor):
        features = {features.name: features}
    features = feature_dict(features)
    model = gbdt_of(features, config, params, "ensemble_model")
    with tf.name_scope("gbdt", "gbdt_optimizer"):
        said = model.predict(mode)
        logits = said[gbdt_batch.PREDICTIONS]
        if modify:
            logits = modify(logits, features, mode)

    def train_op(loss: Any) -> Any:
        step = model.train(loss, said, labels)
        with tf.control_dependencies([step]):
            return tf.assign_add(tf.train.get_global_step(), 1).op

    hooks = _training_hooks(model, params) if mode == "train" else []
    leaves = said.get(gbdt_batch.LEAF_INDEX)
    if hasattr(head, "create_estimator_spec"):
        spec = head.create_estimator_spec(
            features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
        )
        predictions = spec.predictions
        if leaves is not None:
            predictions = {**predictions, gbdt_batch.LEAF_INDEX: leaves}
        spec = spec._replace(predictions=predictions, training_hooks=[*hooks, *(spec.training_hooks or [])])
        if output_type is ModelBuilderOutputType.ESTIMATOR_SPEC:
            return spec
        return _ops_of_spec(spec)
    found = head.create_model_fn_ops(
        features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
    )
    if leaves is not None:
        found = found._replace(predictions={**found.predictions, gbdt_batch.LEAF_INDEX: leaves})
    if hooks:
        found = found._replace(training_hooks=[*(found.training_hooks or []), *hooks])
    return found


def _ops_of_spec(spec: Any) -> Any:
    return ModelFnOps(
        mode=spec.mode,
        predictions=spec.predictions,
        loss=spec.loss,
        train_op=spec.train_op,
        eval_metric_ops=spec.eval_metric_ops,
        training_hooks=spec.training_hooks,
    )
