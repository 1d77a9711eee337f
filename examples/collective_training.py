"""Synchronous data parallelism without a parameter server: every replica has the model, and they add up.

White paper, section 7. Each replica computes the gradients of its share of the batch, and has variables of
its own. The gradients of all replicas are averaged by `all_reduce`, and each replica applies the same update
to its variables, so that they stay equal: to the weights that one device would have after the same batches.
At the start, the first replica sends its variables to the others.

In one process the replicas are on the devices ``/cpu:0``, ``/cpu:1`` …:

    python collective_training.py --replicas 4

In a cluster each task has one, in a graph and a session of its own; their steps meet in the all-reduces:

    flowstone cluster up --workers 4 collective_training.py

    4 replicas: loss 0.238, test accuracy 91.2%, 300 steps in 0.9 s
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf
from digit_classifier import batches, loss_of, read_digits, test_accuracy
from flowstone.ops.collectives.collective_ops import all_reduce, broadcast_recv, broadcast_send
from progress import shown_progress

GROUP = 1  # the number of the group that all replicas form


class Replica(NamedTuple):
    """What a client needs of one replica."""

    number: int
    images: Any  # float32 [share of the batch, 784]
    labels: Any  # int64 [share of the batch]
    loss: Any  # float32 []: the mean over the whole batch, the same for all replicas
    train: Any  # one update
    agree: Any  # gives the variables the values that replica 0 has
    variables: list[Any]


def build(number: int, device: str, replicas: int, share: int, rate: float) -> Replica:
    """One of `replicas` replicas, on this device; `share`: examples a step."""
    with tf.device(device), tf.variable_scope(f"replica{number}"):
        images = tf.placeholder(tf.float32, [share, 784], name="images")
        labels = tf.placeholder(tf.int64, [share], name="labels")
        own_loss = loss_of(images, labels, place=device)
        variables = tf.trainable_variables(tf.get_variable_scope().name + "/")
        optimizer = tf.train.GradientDescentOptimizer(rate)
        pairs = optimizer.compute_gradients(own_loss, variables)
        averaged = [
            (mean_of(gradient, replicas, instance), variable)
            for instance, (gradient, variable) in enumerate(pairs, start=1)
        ]
        loss = mean_of(own_loss, replicas, 0)
        agree = tf.group(*[
            tf.assign(variable, first_of(variable, number, replicas, 100 + i))
            for i, variable in enumerate(variables)
        ])  # fmt: skip
        train = optimizer.apply_gradients(averaged)
    return Replica(number, images, labels, loss, train, agree, variables)


def mean_of(value: Any, replicas: int, instance: int) -> Any:
    """The mean of the replicas' values. `instance` tells the values of a step from each other."""
    return all_reduce(value, replicas, GROUP, instance, "Add", "Div")


def first_of(variable: Any, number: int, replicas: int, instance: int) -> Any:
    """The value that the variable has at replica 0."""
    if replicas == 1:
        return variable.read_value()
    if number == 0:
        return broadcast_send(
            variable.read_value(), variable.shape, variable.dtype.base_dtype, replicas, GROUP, instance
        )
    return broadcast_recv(variable.shape, variable.dtype.base_dtype, replicas, GROUP, instance)


def train(
    session: Any, mine: list[Replica], replicas: int, steps: int, batch: int
) -> tuple[list[float], list[np.ndarray[Any, Any]], float]:
    """Trains the replicas of this session: (the loss of each step, the first one's variables, the accuracy on
    the test digits)."""
    digits, share, losses = read_digits(), batch // replicas, []
    session.run(tf.global_variables_initializer())
    session.run([replica.agree for replica in mine])
    with shown_progress(f"{replicas} replicas", steps) as show:
        for step, (images, labels) in zip(range(1, steps + 1), batches(digits, batch, seed=5)):
            feed = {}
            for replica in mine:
                part = slice(replica.number * share, (replica.number + 1) * share)
                feed.update({replica.images: images[part], replica.labels: labels[part]})
            fetched = session.run([mine[0].loss, *[replica.train for replica in mine]], feed)
            losses.append(float(fetched[0]))
            show(step, loss=losses[-1])
    with tf.variable_scope(f"replica{mine[0].number}", reuse=True):
        return losses, session.run(mine[0].variables), test_accuracy(session, digits)


def train_here(
    replicas: int, steps: int, batch: int = 128, rate: float = 0.2
) -> tuple[list[float], list[np.ndarray[Any, Any]], float]:
    """`train` in one process, with a replica on each of as many CPU devices."""
    with tf.Graph().as_default():
        mine = [build(i, f"/cpu:{i}", replicas, batch // replicas, rate) for i in range(replicas)]
        # The loss of every replica is part of the reduction, so that all of them have to run.
        mine[0] = mine[0]._replace(loss=tf.add_n([replica.loss for replica in mine]) / replicas)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": replicas})) as session:
            return train(session, mine, replicas, steps, batch)


def train_as_task(
    job: str, task: int, cluster: dict[str, list[str]], steps: int, batch: int, rate: float = 0.2
) -> tuple[list[float], list[np.ndarray[Any, Any]], float]:
    """`train` as one task of a cluster, with one replica."""
    own, replicas = f"/job:{job}/task:{task}", len(cluster[job])
    config = tf.ConfigProto(device_filters=[own])  # each task has a session and a graph of its own
    config.experimental.collective_group_leader = f"/job:{job}/task:0"
    server = tf.train.Server(cluster, job, task, config=config)
    with tf.Graph().as_default():
        replica = build(task, f"{own}/cpu:0", replicas, batch // replicas, rate)
        with tf.Session(server.target, config=config) as session:
            return train(session, [replica], replicas, steps, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--replicas", type=int, default=4, help="replicas, outside a cluster (4)")
    parser.add_argument("--steps", type=int, default=300, help="updates (300)")
    parser.add_argument("--batch", type=int, default=128, help="examples a step, of all replicas (128)")
    parser.add_argument("--save", help="a file (.npz) for the weights")
    options = parser.parse_args()
    place = json.loads(os.environ.get("TF_CONFIG", "{}"))
    replicas = len(place["cluster"][place["task"]["type"]]) if place else options.replicas
    if min(replicas, options.steps) < 1 or options.batch < 1 or options.batch % replicas:
        parser.error("--steps must be at least 1 and --batch a multiple of the number of replicas")
    start = time.perf_counter()
    if place:
        job, task = place["task"]["type"], int(place["task"]["index"])
        losses, weights, accuracy = train_as_task(job, task, place["cluster"], options.steps, options.batch)
    else:
        losses, weights, accuracy = train_here(replicas, options.steps, options.batch)
    if options.save:
        np.savez(options.save, *weights)
    print(
        f"{replicas} replicas: loss {losses[-1]:.3f}, test accuracy {accuracy:.1%}, "
        f"{options.steps} steps in {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    main()
