"""What an Estimator does with a GANModel: the losses, their sum, and both networks' training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.gan.namedtuples import GANLoss, GANModel
from flowstone.contrib.gan.train import gan_train_ops, get_sequential_train_hooks

__all__ = ["GANHead", "gan_head"]

_ALTERNATING = get_sequential_train_hooks()


class GANHead:
    """The head of a GANEstimator.

    Args:
        generator_loss_fn: from a GANModel to the generator's loss.
        discriminator_loss_fn: from a GANModel to the discriminator's loss.
        generator_optimizer: an optimiser, or a function without arguments that makes one.
        discriminator_optimizer: the same for the discriminator.
        use_loss_summaries: whether the losses are summarised; None leaves that to the losses' functions.
        get_hooks_fn: from GANTrainOps to the hooks that run them.
        name: the scope of the operations; by default GANHead.
    """

    def __init__(
        self,
        generator_loss_fn: Callable[..., Any],
        discriminator_loss_fn: Callable[..., Any],
        generator_optimizer: Any,
        discriminator_optimizer: Any,
        use_loss_summaries: bool | None = True,
        get_hooks_fn: Callable[[Any], Any] = _ALTERNATING,
        name: str | None = None,
    ) -> None:
        def with_summaries(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
            if use_loss_summaries in (True, False):
                return lambda *args, **kwargs: loss_fn(
                    *args, **{**kwargs, "add_summaries": use_loss_summaries}
                )
            return loss_fn

        self._generator_loss_fn = with_summaries(generator_loss_fn)
        self._discriminator_loss_fn = with_summaries(discriminator_loss_fn)
        self._generator_optimizer = generator_optimizer
        self._discriminator_optimizer = discriminator_optimizer
        self._get_hooks_fn = get_hooks_fn
        self._name = name

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

    @property
    def logits_dimension(self) -> None:
        """None: a GANModel has no logits of one size."""
        return None

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> GANLoss:
        """The losses of the GANModel `logits`; the other arguments are not used."""
        _require_model(logits)
        return GANLoss(self._generator_loss_fn(logits), self._discriminator_loss_fn(logits))

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        train_op_fn: Callable[..., Any] = gan_train_ops,
    ) -> Any:
        """The EstimatorSpec of a GANModel.

        Args:
            features: not used.
            mode: one of `tf.estimator.ModeKeys`.
            logits: the GANModel; when predicting only its generated data are used.
            labels: None.
            train_op_fn: from the model, its losses and both optimisers to GANTrainOps.

        Raises ValueError if `logits` is no GANModel or there are labels.
        """
        _require_model(logits)
        if labels is not None:
            raise ValueError(f"`GANHead`'s `create_estimator_spec` takes no `labels`: {labels}")
        with tf.name_scope("GANHead" if self._name is None else self._name):
            if mode == tf.estimator.ModeKeys.PREDICT:
                return tf.estimator.EstimatorSpec(mode, predictions=logits.generated_data)
            losses = self.create_loss(features, mode, logits, None)
            loss = losses.generator_loss + losses.discriminator_loss
            if mode == tf.estimator.ModeKeys.EVAL:
                return tf.estimator.EstimatorSpec(
                    mode, predictions=logits.generated_data, loss=loss, eval_metric_ops={}
                )
            optimizers = (_made(self._generator_optimizer), _made(self._discriminator_optimizer))
            train_ops = train_op_fn(logits, losses, *optimizers)
            hooks = self._get_hooks_fn(train_ops)
            return tf.estimator.EstimatorSpec(
                mode, loss=loss, train_op=train_ops.global_step_inc_op, training_hooks=hooks
            )


def _made(optimizer: Any) -> Any:
    return optimizer() if callable(optimizer) else optimizer


def _require_model(logits: Any) -> None:
    if not isinstance(logits, GANModel):
        raise ValueError(f"the `logits` of a `GANHead` are a `GANModel`, not {logits}")


def gan_head(
    generator_loss_fn: Callable[..., Any],
    discriminator_loss_fn: Callable[..., Any],
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    use_loss_summaries: bool | None = True,
    get_hooks_fn: Callable[[Any], Any] = _ALTERNATING,
    name: str | None = None,
) -> GANHead:
    """A `GANHead` of these arguments."""
    return GANHead(
        generator_loss_fn,
        discriminator_loss_fn,
        generator_optimizer,
        discriminator_optimizer,
        use_loss_summaries,
        get_hooks_fn,
        name,
    )
