"""The training loop of slim with an update of the masks after each step."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.slim import learning

__all__ = ["train"]

_USE_DEFAULT = 0


def train(
    train_op: Any, logdir: str | None, mask_update_op: Any, train_step_fn: Any = learning.train_step,
    train_step_kwargs: Any = _USE_DEFAULT, log_every_n_steps: int = 1, graph: Any = None, master: str = "",
    is_chief: bool = True, global_step: Any = None, number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT, init_feed_dict: Any = None, local_init_op: Any = _USE_DEFAULT,
    init_fn: Any = None, ready_op: Any = _USE_DEFAULT, summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600, summary_writer: Any = _USE_DEFAULT, startup_delay_steps: int = 0,
    saver: Any = None, save_interval_secs: float = 600, sync_optimizer: Any = None,
    session_config: Any = None, trace_every_n_steps: int | None = None,
) -> Any:  # fmt: skip
    """Trains as `tf.contrib.slim.learning.train` and runs `mask_update_op` after each step.

    The other arguments, the result and the errors are those of that function.
    """
    given = dict(locals())
    for name in ("train_op", "logdir", "mask_update_op", "train_step_fn"):
        del given[name]

    def step(session: Any, train_op: Any, global_step: Any, train_step_kwargs: Any) -> Any:
        result = train_step_fn(session, train_op, global_step, train_step_kwargs)
        session.run(mask_update_op)
        return result

    return learning.train(train_op, logdir, train_step_fn=step, **given)
