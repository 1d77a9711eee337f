"""Seeds from seeds: TensorFlow 2.21's. Other names of `tf.random`."""

from __future__ import annotations

import numpy as np

import flowstone as tf

EXPECTED = [
    [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]],
    [[7464880146280614444, 1591045637757961278], [-1057468755545501549, 2524363516007002203]],
    [1105988140, 5],
    [7464880146280614444, 7],
]


def test_seeds_are_tensorflows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        three, wide = tf.random.split([1, 2], 3), tf.random.split(np.array([1, 2], np.int64))
        assert three.shape.as_list() == [3, 2] and wide.dtype == tf.int64
        folded = tf.random.fold_in([1, 2], 5), tf.random.fold_in([1, 2], np.int64(7))
        got = [x.tolist() for x in session.run([three, wide, *folded])]
    assert got == EXPECTED


def test_names_of_the_namespace() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = tf.random.categorical([[0.0, -100.0], [-100.0, 0.0]], 5, dtype=tf.int32, seed=3)
        assert drawn.op.name == "categorical/Multinomial" and drawn.dtype == tf.int32
        assert session.run(drawn).tolist() == [[0] * 5, [1] * 5]
    for kind in ("all", "fixed_unigram", "learned_unigram", "log_uniform", "uniform"):
        name = f"{kind}_candidate_sampler"
        assert getattr(tf.random, name) is getattr(tf.nn, name)
