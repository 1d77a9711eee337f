"""`tf.contrib.gan.eval`: values, shapes and names that TensorFlow 1.4.1 gave for the same programs."""

import io
import tarfile

import numpy as np
import pytest

import flowstone as tf

evaluation = tf.contrib.gan.eval


def test_images_side_by_side():
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(np.arange(24).reshape(4, 2, 3, 1), tf.float32)
        grid = evaluation.image_grid(images, (2, 2), image_shape=(2, 3), num_channels=1)
        expected = [
            [0, 1, 2, 6, 7, 8],
            [3, 4, 5, 9, 10, 11],
            [12, 13, 14, 18, 19, 20],
            [15, 16, 17, 21, 22, 23],
        ]
        assert session.run(grid)[0, :, :, 0].tolist() == expected
        assert session.run(evaluation.image_reshaper(images))[0, :, :, 0].tolist() == expected
        assert evaluation.image_reshaper(images, num_cols=3).shape.as_list() == [1, 4, 9, 1]
        assert evaluation.image_reshaper([tf.ones([2, 3, 1])] * 7).shape.as_list() == [1, 6, 9, 1]
        with pytest.raises(ValueError):
            evaluation.image_grid(tf.ones([5, 2, 3, 1]), (2, 2), (2, 3), 1)


@pytest.fixture
def outputs():
    with tf.Graph().as_default(), tf.Session():
        yield [tf.constant(np.random.RandomState(seed).randn(8, 5), tf.float32) for seed in (0, 1)]


@pytest.mark.parametrize("batches", [1, 2])
def test_scores_of_a_classifier(outputs, batches):
    score = evaluation.classifier_score(outputs[0], lambda x: x * 2.0, batches)
    distance = evaluation.frechet_classifier_distance(*outputs, lambda x: x * 2.0, batches)
    assert score.eval() == pytest.approx(1.7006968, rel=1e-5)
    assert distance.eval() == pytest.approx(16.857944, rel=1e-5)
    same = evaluation.frechet_classifier_distance(outputs[0], outputs[0], lambda x: x, batches)
    assert same.eval() == pytest.approx(0.0, abs=1e-5)


def test_scores_take_vectors_of_whole_batches(outputs):
    with pytest.raises(ValueError):
        evaluation.classifier_score(outputs[0], lambda x: x, 3)
    with pytest.raises(ValueError):
        evaluation.classifier_score(outputs[0], lambda x: x[:, 0])
    with pytest.raises(ValueError):
        evaluation.frechet_classifier_distance(outputs[0], outputs[1][:6], lambda x: x)


@pytest.fixture
def arrays():
    return [np.random.RandomState(seed).randn(size, 3) * (seed + 1) for seed, size in ((0, 8), (1, 7))]


def test_distances_of_activations(arrays):
    real, generated = arrays
    squared = np.sum((real.mean(0) - generated.mean(0)) ** 2)
    spread = np.sum((real.std(0) - generated.std(0)) ** 2)
    covariances = [np.cov(x, rowvar=False) for x in arrays]
    roots = np.sqrt(np.linalg.eigvals(covariances[0] @ covariances[1]).real).sum()
    expected = {
        "mean_only_frechet_classifier_distance_from_activations": squared,
        "diagonal_only_frechet_classifier_distance_from_activations": squared + spread,
        "frechet_classifier_distance_from_activations": squared + sum(map(np.trace, covariances)) - 2 * roots,
    }
    with tf.Graph().as_default(), tf.Session() as session:
        for name, value in expected.items():
            distance = getattr(evaluation, name)
            assert session.run(distance(*arrays)) == pytest.approx(value, rel=1e-9), name
            assert distance(*(tf.constant(x, tf.float32) for x in arrays)).dtype == tf.float32
        with pytest.raises(ValueError):
            evaluation.frechet_classifier_distance_from_activations(real[0], generated)


def discrepancy(real, generated):
    """The unbiased squared maximum mean discrepancy by the kernel (x y / 3 + 1) ** 3, pair by pair."""

    def kernel(x, y):
        return (x @ y / 3 + 1) ** 3

    within = [
        np.mean([kernel(x, y) for i, x in enumerate(part) for j, y in enumerate(part) if i != j])
        for part in (real, generated)
    ]
    return sum(within) - 2 * np.mean([kernel(x, y) for x in real for y in generated])


def test_kernel_distances(arrays):
    real, generated = arrays
    parts = [(real[:2], generated[:2]), (real[2:5], generated[2:4]), (real[5:], generated[4:])]
    estimates = [discrepancy(*part) for part in parts]
    with tf.Graph().as_default(), tf.Session() as session:
        whole = evaluation.kernel_classifier_distance_and_std_from_activations(*arrays)
        mean, error = session.run(whole)
        assert mean == pytest.approx(discrepancy(real, generated), rel=1e-9) and np.isnan(error)
        cut = evaluation.kernel_classifier_distance_and_std_from_activations(*arrays, max_block_size=3)
        found = session.run(cut)
        assert found == pytest.approx([np.mean(estimates), np.std(estimates, ddof=1) / 3**0.5], rel=1e-9)
        single = evaluation.kernel_classifier_distance_from_activations(*arrays, dtype=tf.float32)
        assert single.dtype == tf.float32
        of_images = evaluation.kernel_classifier_distance(
            *(tf.constant(x[:6]) for x in arrays), lambda x: 2.0 * x, num_classifier_batches=2
        )
        assert session.run(of_images) == pytest.approx(discrepancy(2 * real[:6], 2 * generated[:6]), rel=1e-9)


def test_images_as_inception_takes_them():
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.constant((np.arange(1800) % 256).reshape(20, 30, 3), tf.uint8)
        assert evaluation.preprocess_image(image, 10, 12, scope="q").op.name.startswith("q/")
        whole = evaluation.preprocess_image(image, 20, 30, central_fraction=1.0)
        np.testing.assert_allclose(session.run(whole), session.run(tf.to_float(image)) / 127.5 - 1, atol=1e-5)
        with pytest.raises(ValueError):
            evaluation.preprocess_image(tf.ones([2, 20, 30, 3]), 10, 12)


@pytest.fixture
def network(tmp_path):
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [None, 8, 8, 3], name="input")
        tf.reduce_mean(images, [1], name="out")
    path = tmp_path / "network.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


def test_networks_come_from_files(network, tmp_path):
    message = evaluation.get_graph_def_from_disk(str(network))
    assert message.node[0].name == "input"
    assert evaluation.get_graph_def_from_resource(str(network)) == message
    with tarfile.open(tmp_path / "networks.tar.gz", "w:gz") as archive:
        data = network.read_bytes()
        member = tarfile.TarInfo("network.pb")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    url = (tmp_path / "networks.tar.gz").as_uri()
    assert evaluation.get_graph_def_from_url_tarball(url, "network.pb") == message
    with pytest.raises(tf.errors.NotFoundError):
        evaluation.get_graph_def_from_disk(str(tmp_path / "absent"))


def test_a_network_runs_on_images(network):
    message = evaluation.get_graph_def_from_disk(str(network))
    names = {"image_size": 8, "input_tensor": "input:0", "output_tensor": "out:0"}
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.random_uniform([4, 8, 8, 3], seed=1)
        output = evaluation.run_image_classifier(images, message, "input:0", "out:0")
        assert (output.op.name, output.shape.as_list()) == ("RunClassifier/out", [4, 8, 3])
        given = evaluation.run_inception(images, message, **names)
        made = evaluation.run_inception(images, default_graph_def_fn=lambda: message, **names)
        assert given.shape.as_list() == made.shape.as_list() == [4, 24]
        scores = [
            evaluation.inception_score(
                images, classifier_fn=lambda x: evaluation.run_inception(x, message, **names)
            ),
            evaluation.frechet_inception_distance(
                images, images + 1.0, classifier_fn=lambda x: evaluation.run_inception(x, message, **names)
            ),
        ]
        score, distance = session.run(scores)
        assert score >= 1.0
        assert distance == pytest.approx(24.0, rel=1e-3)
        with pytest.raises(ValueError):
            evaluation.run_inception(tf.ones([2, 9, 8, 3]), message, **names)


@pytest.fixture
def model():
    with tf.Graph().as_default():
        regularizer = tf.contrib.layers.l2_regularizer(0.1)
        with tf.variable_scope("g") as g:
            generator = tf.get_variable("w", [4, 12], regularizer=regularizer)
        with tf.variable_scope("d") as d:
            discriminator = tf.get_variable("dv", [2], regularizer=regularizer)
        images = [tf.ones([16, 4, 4, 3]) for _ in range(3)]
        outputs = tf.ones([16]), tf.zeros([16])
        yield tf.contrib.gan.GANModel(
            images[0], images[1], [generator], g, None, images[2], *outputs, [discriminator], d, None
        )


def _summaries():
    return {op.op.name: op.op.inputs[1].shape.as_list() for op in tf.get_collection("summaries")}


def test_summaries_of_images_and_variables(model):
    evaluation.add_gan_model_image_summaries(model)
    assert _summaries() == {
        "real_data": [1, 16, 16, 3],
        "generated_data": [1, 16, 16, 3],
        "generator_variables/g/w_0": [4, 12],
        "discriminator_variables/d/dv_0": [2],
    }
    evaluation.add_gan_model_summaries(model)
    assert "generator_variables_1/g/w_0" in _summaries()


def test_summaries_of_comparisons_and_losses(model):
    evaluation.add_image_comparison_summaries(model)
    evaluation.add_image_comparison_summaries(model, 3, display_diffs=True)
    evaluation.add_regularization_loss_summaries(model)
    assert _summaries() == {
        "image_comparison": [1, 12, 8, 3],
        "image_comparison_1": [1, 16, 12, 3],
        "generator_regularization_loss": [],
        "discriminator_regularization_loss": [],
    }
    with pytest.raises(ValueError):
        evaluation.add_image_comparison_summaries(model._replace(generator_inputs=tf.ones([16, 4])))
    with pytest.raises(ValueError):
        evaluation.add_gan_model_image_summaries(model, 5)
