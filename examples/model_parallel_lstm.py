"""The model-parallel LSTM, "Model parallel training".

White paper, section 7. Different parts of one model are on different devices and work at the same time on the
same batch: here a deep LSTM with a layer on each device, unrolled in time. While layer 1 is at character t,
layer 2 is at character t - 1; a layer's output crosses to the next device as soon as it is known. The numbers
are those of one device.

    2 layers on 2 devices: loss 2.10 of 3.61 at random, 100 steps in 3.3 s

With ``--cluster`` the devices are the workers of a cluster, each of which keeps its layers' variables:

    flowstone cluster up --workers 2 examples/model_parallel_lstm.py --cluster
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf
from corpus import read_characters
from places import ClusterTask, Places, on_cpus
from progress import shown_progress

BATCH = 32


class Training(NamedTuple):
    """What a client needs of the graph."""

    characters: Any  # int32 [batch, length + 1]
    loss: Any  # float32 []: of the next character, in nats
    train: Any


def build(vocabulary: int, layers: int, devices: list[str], units: int, length: int) -> Training:
    """The graph, layer k on the device ``devices[k % len(devices)]``.

    The embedding is with the first layer, the soft-max with the last.
    """
    tf.set_random_seed(1)
    places = [devices[layer % len(devices)] for layer in range(layers)]
    with tf.device(places[0]):
        characters = tf.placeholder(tf.int32, [BATCH, length + 1], name="characters")
        table = tf.get_variable("embedding", [vocabulary, units])
        inputs = tf.unstack(tf.nn.embedding_lookup(table, characters[:, :-1]), axis=1)
    cells = [tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(units), place) for place in places]
    outputs, _ = tf.nn.static_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), inputs, dtype=tf.float32)
    with tf.device(places[-1]):
        weights = tf.get_variable("weights", [units, vocabulary])
        bias = tf.get_variable("bias", [vocabulary], initializer=tf.zeros_initializer())
        logits = tf.matmul(tf.concat(outputs, 0), weights) + bias
        targets = tf.reshape(tf.transpose(characters[:, 1:]), [-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        loss = tf.reduce_mean(losses)
    # The gradients of a node go where the node is.
    optimizer = tf.train.AdamOptimizer(0.01)
    gradients = optimizer.compute_gradients(loss, colocate_gradients_with_ops=True)
    return Training(characters, loss, optimizer.apply_gradients(gradients))


def train_layers(
    layers: int, places: Places, steps: int, units: int = 256, length: int = 16
) -> tuple[list[float], int]:
    """Trains for `steps` batches: (the loss of each, how many characters there are to choose from)."""
    text = read_characters(200_000)
    random, losses = np.random.RandomState(3), []
    with tf.Graph().as_default():
        graph = build(len(text.vocabulary), layers, places.devices, units, length)
        with places.session() as session:
            session.run(tf.global_variables_initializer())
            with shown_progress(f"{layers} layers on {len(places.devices)} devices", steps) as show:
                for step in range(1, steps + 1):
                    starts = random.randint(0, len(text.ids) - length, BATCH)
                    batch = text.ids[starts[:, None] + np.arange(length + 1)]
                    losses.append(float(session.run([graph.loss, graph.train], {graph.characters: batch})[0]))
                    show(step, loss=losses[-1])
    return losses, len(text.vocabulary)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, default=2, help="layers of the LSTM (2)")
    parser.add_argument("--devices", type=int, default=2, help="devices that they are spread over (2)")
    parser.add_argument("--steps", type=int, default=100, help="updates (100)")
    parser.add_argument("--units", type=int, default=256, help="units of a layer (256)")
    parser.add_argument("--cluster", action="store_true", help="on the workers of TF_CONFIG's cluster")
    options = parser.parse_args()
    if min(options.layers, options.devices, options.steps, options.units) < 1:
        parser.error("--layers, --devices, --steps and --units must be at least 1")
    with ClusterTask().leading() if options.cluster else nullcontext(on_cpus(options.devices)) as places:
        report(places, options)


def report(places: Places, options: argparse.Namespace) -> None:
    """Trains, and prints what came of it."""
    start = time.perf_counter()
    losses, choices = train_layers(options.layers, places, options.steps, options.units)
    print(
        f"{options.layers} layers on {len(places.devices)} devices: loss {losses[-1]:.2f} "
        f"of {np.log(choices):.2f} at random, {options.steps} steps in {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    main()
