"""`tf.keras.callbacks.TensorBoard`: tags `epoch_…` and `batch_…`, and steps, are those of TensorFlow 1.15.

| what | step |
| --- | --- |
| `batch_loss` … | how many batches came before |
| `epoch_loss` … | the epoch; with another `update_freq` than "epoch", how many samples were seen |
| histograms, images | how many batches of validation came before |
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowstone.keras.published import own

__all__ = ["extend"]

_COUNTS = ("batch", "size", "num_steps")  # no results


def _changed_init(published: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *arguments: Any, profile_batch: int = 2, **options: Any) -> None:
        """See the package. `profile_batch` is taken and has no effect: see `tf.profiler`."""
        published(self, *arguments, **options)
        self._batches_seen = 0
        self._validation_batches_seen = 0

    return __init__


def _on_batch_end(self: Any, batch: int, logs: Any = None) -> None:
    """Writes the results of a batch, if it is time to."""
    self.samples_seen += (logs or {}).get("size", 1)
    since = self.samples_seen - self.samples_seen_at_last_write
    if self.update_freq != "epoch" and since >= self.update_freq:
        self._write_logs(_tagged("batch_", logs), self._batches_seen)
        self.samples_seen_at_last_write = self.samples_seen
    self._batches_seen += 1


def _write_custom_summaries(self: Any, step: int, logs: Any = None) -> None:
    """Writes values by their names, as callbacks of other libraries ask for."""
    self._write_logs(logs or {}, step)


def _changed_epoch_end(published: Callable[..., None]) -> Callable[..., None]:
    def on_epoch_end(self: Any, epoch: int, logs: Any = None) -> None:
        """Writes the results of an epoch, histograms and embeddings."""
        if self.validation_data and self.histogram_freq and epoch % self.histogram_freq == 0:
            _write_histograms(self)
        if self.embeddings_freq:
            frequency, self.histogram_freq = self.histogram_freq, 0
            try:
                published(self, epoch)
            finally:
                self.histogram_freq = frequency
        index = epoch if self.update_freq == "epoch" else self.samples_seen
        self._write_logs(_tagged("epoch_", logs), index)

    return on_epoch_end


def _tagged(prefix: str, logs: Any) -> dict[str, Any]:
    return {prefix + name: value for name, value in (logs or {}).items() if name not in _COUNTS}


def _write_histograms(board: Any) -> None:
    """Runs the summaries of weights and outputs on the data of validation, batch after batch."""
    model = board.model
    tensors = [*model._feed_inputs, *model._feed_targets, *model._feed_sample_weights]
    values = board.validation_data[: len(tensors)]
    phase = {own("backend").learning_phase(): 0} if len(board.validation_data) > len(tensors) else {}
    size = board.params.get("batch_size") or board.batch_size
    for start in range(0, len(values[0]), size):
        batch = {tensor: value[start : start + size] for tensor, value in zip(tensors, values)}
        summary = board.sess.run(board.merged, {**batch, **phase})
        board.writer.add_summary(summary, board._validation_batches_seen)
        board._validation_batches_seen += 1


def extend(module: ModuleType) -> None:
    """Changes the class `TensorBoard`, in the module that defines it."""
    board: Any = vars(module).get("TensorBoard")
    if board is not None and board.__module__ == module.__name__:
        board.__init__ = _changed_init(board.__init__)
        board.on_batch_end = _on_batch_end
        board._write_custom_summaries = _write_custom_summaries
        board.on_epoch_end = _changed_epoch_end(board.on_epoch_end)
