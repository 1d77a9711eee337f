"""Programs of `tf.contrib.ndlstm`, which TensorFlow and flowstone are asked alike."""

import numpy as np

IMAGES = np.linspace(-1, 1, 2 * 4 * 6 * 3).reshape(2, 4, 6, 3).astype(np.float32)
SEQUENCES = np.linspace(-1, 1, 5 * 2 * 3).reshape(5, 2, 3).astype(np.float32)


def _cases(lstm1d, lstm2d, misc):
    return {
        "horizontal": lambda x, s: lstm2d.horizontal_lstm(x, 5),
        "separable": lambda x, s: lstm2d.separable_lstm(x, 3),
        "separable_blocks": lambda x, s: lstm2d.separable_lstm(x, 4, [2, 4], nhidden=3, scope="blocks"),
        "reduced_to_sequence": lambda x, s: lstm2d.reduce_to_sequence(x, 4),
        "reduced_to_final": lambda x, s: lstm2d.reduce_to_final(x, 4, nhidden=3),
        "blocks": lambda x, s: lstm2d.get_blocks(x, [2, 3]),
        "larger_blocks": lambda x, s: lstm2d.get_blocks(x, [3, 4]),
        "sequence": lambda x, s: lstm2d.images_to_sequence(x),
        "images": lambda x, s: lstm2d.sequence_to_images(s, 1),
        "base": lambda x, s: lstm1d.ndlstm_base(s, 3),
        "reversed": lambda x, s: lstm1d.ndlstm_base_dynamic(s, 3, reverse=True, scope="back"),
        "unrolled": lambda x, s: lstm1d.ndlstm_base(s, 3, dynamic=False),
        "unrolled_reversed": lambda x, s: lstm1d.ndlstm_base_unrolled(s, 3, reverse=True),
        "final": lambda x, s: lstm1d.sequence_to_final(s, 3),
        "first": lambda x, s: lstm1d.sequence_to_final(s, 3, scope="to", name="first", reverse=True),
        "softmax": lambda x, s: lstm1d.sequence_softmax(s, 4),
        "named_softmax": lambda x, s: lstm1d.sequence_softmax(
            s, 4, scope="soft", name="max", linear_name="l"
        ),
        "vector": lambda x, s: misc.pixels_as_vector(x),
        "pooled": lambda x, s: misc.pool_as_vector(x),
    }


def answers(tf, lstm1d, lstm2d, misc):
    """For each program the result's name, the variables with their shapes, and the value."""
    found = {}
    for name, program in _cases(lstm1d, lstm2d, misc).items():
        with tf.Graph().as_default(), tf.Session() as session:
            result = program(tf.constant(IMAGES), tf.constant(SEQUENCES))
            variables = sorted(tf.global_variables(), key=lambda variable: variable.op.name)
            session.run(tf.global_variables_initializer())
            draw = np.random.RandomState(0)
            for variable in variables:
                variable.load(draw.uniform(-1, 1, variable.shape.as_list()).astype(np.float32), session)
            shapes = [[variable.op.name, variable.shape.as_list()] for variable in variables]
            value = np.asarray(session.run(result), np.float64)
            found[name] = [result.name, shapes, list(value.shape), np.round(value.ravel()[:40], 4).tolist()]
    return found
