"""Clusters, mixtures and linear models by dual ascent end where TensorFlow's end, with its variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_trained

import flowstone as tf
from flowstone.contrib.linear_optimizer import SdcaModel, SDCAOptimizer, SparseFeatureColumn

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "contrib_learn" / "trained.json").read_text())
CLUSTERS, MARGINS = learn_trained.clusters(tf), learn_trained.margins(tf, SDCAOptimizer)


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    assert set(found) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=tolerance, atol=tolerance, err_msg=key)


def check(name: str, pair: Any, steps: int, tolerance: float) -> None:
    found, expected = learn_trained.answer(*pair, steps=steps), GOLDEN[name]
    assert_close(found["variables"], expected["variables"], tolerance)
    assert_close(found["evaluation"], expected["evaluation"], tolerance)
    for one, other in zip(found["predictions"], expected["predictions"], strict=True):
        if name == "kmeans_cosine" and other["all_scores"][0] == other["all_scores"][1]:
            continue  # the origin is as far from both
        if isinstance(other, dict):
            assert_close(one, other, tolerance)
        else:
            assert one == pytest.approx(other, abs=tolerance)


@pytest.mark.parametrize("name", sorted(CLUSTERS))
def test_clusters_are_those_of_tensorflow(name: str) -> None:
    check(name, CLUSTERS[name], 3, 2e-4)


@pytest.mark.parametrize("name", sorted(MARGINS))
def test_dual_ascent_ends_where_tensorflows_does(name: str) -> None:
    check(name, MARGINS[name], 150, 2e-4)


def test_every_answer_has_a_model() -> None:
    assert set(GOLDEN) == {*CLUSTERS, *MARGINS}


# ---- clusters


def test_the_methods_of_clusters() -> None:
    model = tf.contrib.learn.KMeansClustering(2, initial_clusters=learn_trained.MEANS, use_mini_batch=False)
    inputs = learn_trained.points(tf)
    model.fit(input_fn=inputs, steps=2)
    np.testing.assert_allclose(model.clusters(), [[0.1 / 3, 0.5 / 3], [12.2 / 3, 12.3 / 3]], rtol=1e-5)
    assert list(model.predict_cluster_idx(inputs)) == [0, 0, 1, 1, 0, 1]
    distances = model.transform(inputs)
    assert distances.shape == (6, 2)
    assert model.score(inputs, steps=1) == pytest.approx(distances.min(1).sum(), rel=1e-5)
    assert [each["all_scores"].shape for each in model.transform(inputs, as_iterable=True)] == [(2,)] * 6


def test_mini_batches_are_counted_beside_the_first_centres() -> None:
    model = tf.contrib.learn.KMeansClustering(2, initial_clusters=learn_trained.MEANS)
    model.fit(input_fn=learn_trained.points(tf), steps=1)
    np.testing.assert_allclose(model.clusters()[0], [0.1 / 4, 0.6 / 4], rtol=1e-5)
    assert model.get_variable_value("Variable").tolist() == [4, 4]


@pytest.mark.parametrize("initial", ["random", "kmeans_plus_plus"])
def test_clusters_that_begin_with_examples(initial: str) -> None:
    model = tf.contrib.learn.KMeansClustering(
        2, initial_clusters=initial, use_mini_batch=False, relative_tolerance=0.0, random_seed=3
    )
    model.fit(input_fn=learn_trained.points(tf), steps=50)
    assert model.score(learn_trained.points(tf), steps=1) == pytest.approx(0.22, rel=1e-3)
    assert model.get_variable_value("global_step") < 50  # the tolerance ended training


@pytest.mark.parametrize("arguments", [{"distance_metric": "zz"}, {"initial_clusters": "zz"}])
def test_clusters_of_an_unknown_kind(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="zz"):
        tf.contrib.learn.KMeansClustering(2, **arguments).fit(input_fn=learn_trained.points(tf), steps=1)


def test_the_methods_of_mixtures() -> None:
    model = tf.contrib.factorization.GMM(2, initial_clusters=learn_trained.MEANS, covariance_type="diag")
    inputs = learn_trained.points(tf)
    model.fit(input_fn=inputs, steps=5)
    assert list(model.predict_assignments(input_fn=inputs)) == [0, 0, 1, 1, 0, 1]
    assert model.clusters().shape == model.covariances().shape == (2, 2)
    np.testing.assert_allclose(model.weights(), [0.5, 0.5], atol=1e-3)
    loss = model.evaluate(input_fn=inputs, steps=1)["loss"]
    assert model.score(input_fn=inputs, steps=1) == pytest.approx(loss, rel=1e-4)


# ---- margins


def svm(**options: Any) -> Any:
    return tf.contrib.learn.SVM("id", [learn_trained.columns(tf)["s"]], l2_regularization=1.0, **options)


def test_classes_of_a_machine() -> None:
    model, inputs = svm(), learn_trained.examples(tf)
    model.fit(input_fn=inputs, steps=30)
    assert list(model.predict_classes(input_fn=inputs)) == [1, 0, 1]
    assert model.predict_classes(input_fn=inputs, as_iterable=False).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="provided \\['probabilities'\\]"):
        list(model.predict_proba(input_fn=inputs))


def test_a_machine_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    inputs = learn_trained.examples(tf)
    svm(model_dir=str(tmp_path)).fit(input_fn=inputs, steps=30)
    before = svm(model_dir=str(tmp_path)).evaluate(input_fn=inputs, steps=1)["loss"]
    again = svm(model_dir=str(tmp_path)).fit(input_fn=inputs, steps=5)
    assert again.evaluate(input_fn=inputs, steps=1)["loss"] == pytest.approx(before, abs=1e-3)
    values = again.get_variable_value("ShardedMutableHashTable-1-of-1-values")
    assert np.count_nonzero(values[:, 3]) == 3  # the weights of the three examples


def test_machines_that_are_not_here() -> None:
    with pytest.raises(ValueError, match="Kernel SVMs are not currently supported"):
        svm(kernels=["rbf"])
    column = learn_trained.columns(tf)["p"]
    with pytest.raises(KeyError, match="other"):
        tf.contrib.learn.SVM("other", [column]).fit(input_fn=learn_trained.examples(tf), steps=1)
    learn, by = tf.contrib.learn, SDCAOptimizer("id")
    with pytest.raises(ValueError, match="two classes"):
        learn.LinearClassifier([column], n_classes=3, optimizer=by)
    with pytest.raises(ValueError, match="one number an example"):
        learn.LinearRegressor([column], label_dimension=2, optimizer=by)
    with pytest.raises(ValueError, match="joint weights"):
        learn.LinearRegressor([column], _joint_weights=True, optimizer=by)


def test_the_optimizer_keeps_its_arguments() -> None:
    optimizer = SDCAOptimizer("id", 2, 3, 0.5, 1.5, adaptive=False)
    assert optimizer.get_name() == "SDCAOptimizer" and optimizer.example_id_column == "id"
    assert (optimizer.num_loss_partitions, optimizer.num_table_shards) == (2, 3)
    assert (optimizer.symmetric_l1_regularization, optimizer.symmetric_l2_regularization) == (0.5, 1.5)
    assert not optimizer.adaptive and optimizer.partitioner is None


# ---- the model itself


def model_of(loss_type: str, parted: bool = False) -> tuple[Any, dict[str, Any], list[Any]]:
    """A model of four examples with a dense and a sparse group, its examples and its variables."""
    sparse = SparseFeatureColumn([0, 1, 2, 3], [0, 1, 0, 4], [1.0, 1.0, 2.0, 1.0])
    examples = {
        "sparse_features": [sparse],
        "dense_features": [tf.constant([[1.0], [0.5], [-1.0], [0.0]])],
        "example_labels": tf.constant([1.0, 0.0, 0.0, 1.0]),
        "example_weights": tf.constant([1.0, 2.0, 1.0, 1.0]),
        "example_ids": tf.constant(["a", "b", "c", "d"]),
    }
    table = [tf.Variable(tf.zeros([size])) for size in ((2, 3) if parted else (5,))]
    column = tf.Variable(tf.zeros([1]))
    variables = {"sparse_features_weights": [table], "dense_features_weights": [column]}
    options = {
        "symmetric_l1_regularization": 0.1,
        "symmetric_l2_regularization": 1.0,
        "loss_type": loss_type,
        "adaptive": False,
    }
    return SdcaModel(examples, variables, options), examples, [*table, column]


@pytest.mark.parametrize("parted", [False, True])
@pytest.mark.parametrize(
    "loss_type", ["logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss"]
)
def test_the_gap_between_primal_and_dual_closes(loss_type: str, parted: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        model, examples, variables = model_of(loss_type, parted)
        step = tf.Variable(0, dtype=tf.int64)
        update = model.update_weights(model.minimize(global_step=step))
        gap, loss = model.approximate_duality_gap(), model.regularized_loss(examples)
        session.run(tf.global_variables_initializer())
        assert np.isnan(session.run(gap))
        before = session.run(loss)
        for _ in range(60):
            session.run(update)
        assert abs(session.run(gap)) < 5e-3 and session.run(loss) < before
        assert session.run(step) == 60 and session.run(model.examples_seen()) == 4
        plain = session.run(model.unregularized_loss(examples))
        weights = np.concatenate(session.run(variables))
        penalty = 0.1 * np.abs(weights).sum() + (weights**2).sum() / 2
        assert session.run(loss) == pytest.approx(plain + penalty / 5, rel=1e-5)
        predictions = session.run(model.predictions(examples))
        assert predictions.shape == (4,)
        if loss_type == "logistic_loss":
            assert ((predictions > 0) & (predictions < 1)).all()


def test_parts_of_a_variable_end_as_a_whole_one_does() -> None:
    found = []
    for parted in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            model, _, variables = model_of("squared_loss", parted)
            update = model.update_weights(model.minimize())
            session.run(tf.global_variables_initializer())
            for _ in range(80):
                session.run(update)
            found.append(np.concatenate(session.run(variables)))
    np.testing.assert_allclose(*found, atol=1e-3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loss_type": "zz"}, "Unsupported loss_type: zz"),
        ({"symmetric_l1_regularization": -1.0}, "should be non-negative"),
        ({"symmetric_l2_regularization": None}, "symmetric_l2_regularization must be specified"),
    ],
)
def test_options_that_no_model_has(changed: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default():
        _, examples, _ = model_of("squared_loss")
        options = {
            "symmetric_l1_regularization": 0.0,
            "symmetric_l2_regularization": 1.0,
            "loss_type": "squared_loss",
        }
        with pytest.raises(ValueError, match=message):
            SdcaModel(
                examples,
                {"sparse_features_weights": [], "dense_features_weights": []},
                {**options, **changed},
            )
