"""`tf.contrib.gan.estimator`: names of variables and summaries are those of TensorFlow 1.4.1's programs."""

import numpy as np
import pytest

import flowstone as tf

gan = tf.contrib.gan
SummaryType = gan.estimator.SummaryType
LOSSES = gan.losses.wasserstein_generator_loss, gan.losses.wasserstein_discriminator_loss
VARIABLES = [
    f"{network}/dense/{kind}{slot}"
    for network in ("Discriminator", "Generator")
    for kind in ("bias", "kernel")
    for slot in ("", "/Adam", "/Adam_1")
]
POWERS = [f"GANHead/{who}_train/beta{n}_power" for who in ("discriminator", "generator") for n in (1, 2)]


def _generator(inputs, mode):
    assert mode in ("train", "eval", "infer")
    return tf.layers.dense(inputs, 3)


def _discriminator(data, _):
    return tf.layers.dense(data, 1)


def _estimator(folder=None, **options):
    def optimizer():
        return tf.train.AdamOptimizer(0.1)

    arguments = _generator, _discriminator, *LOSSES, optimizer, optimizer()
    return gan.estimator.GANEstimator(folder, *arguments, **options)


def _inputs():
    data = np.ones([4, 2], np.float32), np.ones([4, 3], np.float32)
    return tf.data.Dataset.from_tensors(data).repeat(30).make_one_shot_iterator().get_next()


def test_an_estimator_trains_and_predicts(tmp_path):
    estimator = _estimator(str(tmp_path))
    estimator.train(_inputs, steps=3)
    assert estimator.get_variable_names() == sorted([*VARIABLES, *POWERS, "global_step"])
    found = estimator.evaluate(_inputs, steps=1)
    assert found["global_step"] == 3 and np.isfinite(found["loss"])
    assert next(estimator.predict(lambda: (tf.ones([4, 2]), None))).shape == (3,)


def _spec(mode, labels=True, **options):
    tf.train.get_or_create_global_step()
    model_fn = _estimator(**options).model_fn
    return model_fn(tf.ones([4, 2]), tf.ones([4, 3]) if labels else None, mode, None)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (
            {"add_summaries": [SummaryType.VARIABLES]},
            [
                "generator_variables/Generator/dense/kernel_0",
                "GANHead/generator_wasserstein_loss/generator_wass_loss",
            ],
        ),
        ({"use_loss_summaries": False, "add_summaries": SummaryType.NONE}, []),
    ],
)
def test_summaries(options, names):
    with tf.Graph().as_default():
        spec = _spec("train", **options)
        summaries = [summary.op.name for summary in tf.get_collection("summaries")]
        assert set(names) <= set(summaries) and bool(names) == bool(summaries)
        assert (spec.loss.op.name, len(spec.training_hooks)) == ("GANHead/add", 2)


@pytest.mark.parametrize("kind", [SummaryType.IMAGES, SummaryType.IMAGE_COMPARISON])
def test_summaries_of_images_need_images(kind):
    with tf.Graph().as_default(), pytest.raises(ValueError):
        _spec("train", add_summaries=kind)


def test_labels_are_the_real_data():
    with tf.Graph().as_default(), pytest.raises(ValueError):
        _spec("infer")
    with tf.Graph().as_default(), pytest.raises(ValueError):
        _spec("train", labels=False)


def test_a_head_of_a_model():
    optimizers = tf.train.AdamOptimizer(0.1), tf.train.AdamOptimizer(0.1)
    head = gan.estimator.gan_head(*LOSSES, *optimizers, name="top")
    assert isinstance(head, gan.estimator.GANHead)
    assert (head.name, head.logits_dimension) == ("top", None)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        generator = lambda x: _generator(x, "train")  # noqa: E731
        model = gan.gan_model(generator, _discriminator, tf.ones([4, 3]), tf.ones([4, 2]))
        losses = head.create_loss(None, "train", model, None)
        assert losses.discriminator_loss.op.name == "discriminator_wasserstein_loss/sub"
        assert head.create_estimator_spec(None, "train", model).train_op is not None
        assert head.create_estimator_spec(None, "eval", model).loss.op.name == "top_1/add"
        assert head.create_estimator_spec(None, "infer", model).predictions is model.generated_data
        with pytest.raises(ValueError):
            head.create_estimator_spec(None, "train", tf.ones([2]))
        with pytest.raises(ValueError):
            head.create_estimator_spec(None, "train", model, labels=3)
