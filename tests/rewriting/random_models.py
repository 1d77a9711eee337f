"""Random training programs from a seed, written with the public API alone.

`build(seed)` adds one to the default graph: convolutional networks, perceptrons, embeddings and recurrences
(unrolled, `while_loop`, `dynamic_rnn`), joined at random to one or two losses and an optimiser. All numbers
follow from the seed, so that two builds train alike. The programs have no races: what is fetched beside
the training op either comes before all updates, or the updates wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import flowstone as tf

BATCH = 4
CLASSES = 3
WORDS = 17

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "selu": tf.nn.selu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
    "leaky_relu": lambda x: tf.maximum(x, 0.2 * x),
    "none": lambda x: x,
}

_OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "locked": lambda: tf.train.GradientDescentOptimizer(0.1, use_locking=True),
    # large epsilons: what is zero but for rounding must not become a step
    "adam": lambda: tf.train.AdamOptimizer(0.01, epsilon=0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=0.1),
    "centred": lambda: tf.train.RMSPropOptimizer(0.01, centered=True, epsilon=0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.05),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5, epsilon=0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.05, l2_regularization_strength=0.01),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.05, l2_regularization_strength=0.01),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.05),
}


class Model(NamedTuple):
    """What `build` made: tensors to fetch in each step (the first is the loss), the training op, ops to run
    before each step, and what to feed in step i."""

    description: str
    tolerance: float
    fetches: list[Any]
    train: Any
    before: list[Any]
    feeds: Callable[[int], dict[Any, np.ndarray]]

    def initialise(self, session: Any, seed: int) -> None:
        """Gives trained variables numbers of their own and all others their initial values."""
        session.run(tf.global_variables_initializer())
        rng = np.random.default_rng(seed)
        for variable in tf.trainable_variables():
            dims = variable.get_shape().as_list()
            fan_in = int(np.prod(dims[:-1])) or 1
            value = rng.standard_normal(dims) / np.sqrt(fan_in if len(dims) > 1 else 4)
            variable.load(value.astype(variable.dtype.base_dtype.as_numpy_dtype), session)


class Builder:
    """Draws the parts of a program; what it draws is written down in `said`."""

    def __init__(self, seed: int, only_common: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.only_common = only_common  # what needs a GPU elsewhere is left out
        self.dtype = self.pick(tf.float64, tf.float64, tf.float32)
        self.is_resource = self.chance(0.4)
        self.training = self.chance(0.8)
        self.known_batch = self.chance(0.8)
        self.said: list[str] = []
        self.count = 0
        self.watched: list[Any] = []
        self.fed: list[tuple[Any, Callable[[np.random.Generator], np.ndarray]]] = []
        self.shared: dict[Any, Any] = {}

    def pick(self, *choices: Any) -> Any:
        """One of these."""
        return choices[self.rng.integers(len(choices))]

    def chance(self, probability: float) -> bool:
        """True so often."""
        return bool(self.rng.random() < probability)

    def say(self, word: str) -> None:
        """Writes down what was drawn."""
        self.said.append(word)

    def variable(self, *dims: int) -> Any:
        """A new variable, or, sometimes, one of this shape that is in use already."""
        if dims in self.shared and self.chance(0.25):
            self.say("shared")
            return self.shared[dims]
        self.count += 1
        zeros = tf.zeros_initializer()
        self.shared[dims] = tf.get_variable(
            f"v{self.count}", dims, self.dtype, zeros, use_resource=self.is_resource
        )
        return self.shared[dims]

    def placed(self) -> Any:
        """A scope that asks for one of the CPUs, or for none."""
        return tf.device(self.pick(None, None, "/cpu:0", "/cpu:1", "/cpu:2"))

    def number(self, *dims: int) -> np.ndarray:
        """Random numbers to build in."""
        return self.rng.standard_normal(dims).astype(self.dtype.as_numpy_dtype)

    def feed(self, dtype: Any, dims: list[Any], draw: Callable[[np.random.Generator], np.ndarray]) -> Any:
        """A placeholder and what to feed it."""
        x = tf.placeholder(dtype, dims)
        self.fed.append((x, draw))
        return x

    def real_input(self, *dims: int) -> Any:
        """Examples of this shape."""
        first = BATCH if self.known_batch else None
        numpy = self.dtype.as_numpy_dtype
        return self.feed(
            self.dtype, [first, *dims], lambda rng: rng.standard_normal((BATCH, *dims)).astype(numpy)
        )

    def word_input(self, *dims: int, limit: int = WORDS) -> Any:
        """Numbers of words or classes."""
        whole = self.pick(tf.int32, tf.int64)
        first = BATCH if self.known_batch else None
        numpy = whole.as_numpy_dtype
        return self.feed(
            whole, [first, *dims], lambda rng: rng.integers(0, limit, (BATCH, *dims)).astype(numpy)
        )

    def activation(self, x: Any) -> Any:
        """Some activation of x."""
        name = "relu" if self.chance(0.3) else self.pick(*_ACTIVATIONS)
        self.say(name)
        y = _ACTIVATIONS[name](x)
        if self.chance(0.2):
            self.watched.append(y)
        return y

    # ---- layers

    def biased(self, x: Any, channels: int, layout: str = "NHWC") -> Any:
        """x and a bias, added in one of the ways there are."""
        way = self.pick("bias_add", "plus", "none", "broadcast")
        self.say(way)
        bias = self.variable(channels)
        if way == "bias_add":
            return (
                tf.nn.bias_add(x, bias, data_format=layout) if x.shape.ndims == 4 else tf.nn.bias_add(x, bias)
            )
        if way == "none":
            return x
        if layout == "NCHW":
            bias = tf.reshape(bias, [1, channels, 1, 1])
        return x + bias if way == "plus" else bias + x

    def convolution(self, x: Any, layout: str) -> Any:
        """conv2d, or `tf.nn.convolution` of filters with holes."""
        channel_axis = 3 if layout == "NHWC" else 1
        channels, new = int(x.shape[channel_axis]), int(self.pick(2, 4, 6))
        size, stride = int(self.pick(1, 2, 3)), int(self.pick(1, 1, 2))
        padding, way = self.pick("SAME", "VALID"), self.pick("op", "op", "op", "dilated")
        self.say(f"{way}{size}x{size}/{stride}{padding}{layout}")
        filters = self.variable(size, size, channels, new)
        if way == "dilated" and (layout == "NHWC" or not self.only_common):
            x = tf.nn.convolution(x, filters, padding, dilation_rate=[2, 2], data_format=layout)
        else:
            strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
            x = tf.nn.conv2d(x, filters, strides, padding, data_format=layout)
        return self.biased(x, new, layout)

    def pooling(self, x: Any, layout: str) -> Any:
        """Maxima or means of windows."""
        size, stride = int(self.pick(2, 2, 3)), int(self.pick(1, 2))
        padding, name = self.pick("SAME", "VALID"), self.pick("max_pool", "max_pool", "avg_pool")
        self.say(f"{name}{size}/{stride}{padding}")
        if layout == "NHWC":
            window, strides = [1, size, size, 1], [1, stride, stride, 1]
        else:
            window, strides = [1, 1, size, size], [1, 1, stride, stride]
        y = getattr(tf.nn, name)(x, window, strides, padding, data_format=layout)
        if self.chance(0.2):
            self.watched.append(y)
        return y

    def normalisation(self, x: Any, layout: str) -> Any:
        """Batch normalisation: fused or composed, and with moving means, which inference goes by."""
        axis = 3 if layout == "NHWC" and x.shape.ndims == 4 else 1
        channels = int(x.shape[axis])
        way = self.pick("moving", "composed", "fused")
        if way == "fused" and (x.shape.ndims != 4 or self.dtype != tf.float32):
            way = "moving"
        self.say(f"norm_{way}{'' if self.training else '_inference'}")
        scale, offset = self.variable(channels), self.variable(channels)
        if way == "fused":
            return tf.nn.fused_batch_norm(x, scale, offset, data_format=layout)[0]
        axes = [i for i in range(x.shape.ndims) if i != axis]
        mean, variance = tf.nn.moments(x, axes, keep_dims=self.chance(0.5))
        if way == "moving":
            mean, variance = (
                self.moving(mean, tf.zeros_initializer()),
                self.moving(variance, tf.ones_initializer()),
            )
        if axis == 1 and x.shape.ndims == 4:
            dims = [1, channels, 1, 1]
            mean, variance, scale, offset = (tf.reshape(v, dims) for v in (mean, variance, scale, offset))
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    def moving(self, statistic: Any, initial: Any) -> Any:
        """The statistic, which a moving average follows, or in inference that average."""
        self.count += 1
        average = tf.get_variable(
            f"m{self.count}",
            statistic.shape,
            self.dtype,
            initial,
            trainable=False,
            use_resource=self.is_resource,
        )
        if not self.training:
            return average + self.number(1)[0] ** 2
        change = (average - statistic) * 0.1
        update = average.assign_sub(change) if self.is_resource else tf.assign_sub(average, change)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        return statistic

    def images(self) -> Any:
        """A convolutional network's features, [batch, features]."""
        side, channels = int(self.pick(6, 8)), int(self.pick(1, 3))
        x = self.real_input(side, side, channels)
        layout = "NHWC" if self.only_common else self.pick("NHWC", "NHWC", "NCHW")
        if layout == "NCHW":
            x = tf.transpose(x, [0, 3, 1, 2])
        for _ in range(self.rng.integers(1, 4)):
            with self.placed():
                before = x
                x = self.convolution(x, layout) if min(_sides(x, layout)) >= 5 else x
                parts = self.pick((0, 1), (1, 0), (2, 0, 1), tuple(self.rng.permutation(4)))
                for part in parts[: self.rng.integers(1, 5)]:
                    if part == 0:
                        x = self.activation(x)
                    elif part == 1 and min(_sides(x, layout)) >= 3:
                        x = self.pooling(x, layout)
                    elif part == 2:
                        x = self.normalisation(x, layout)
                    elif part == 3:
                        x = self.dropped(x)
                if self.chance(0.4) and before.shape.as_list() == x.shape.as_list():
                    self.say("residual")
                    x = x + before
        if layout == "NCHW" and self.chance(0.5):
            x = tf.transpose(x, [0, 2, 3, 1])
        return tf.reshape(x, [-1, int(np.prod(x.shape.as_list()[1:]))])

    def dropped(self, x: Any) -> Any:
        """Dropout, whose numbers follow from its seed."""
        if self.only_common or not self.chance(0.5):
            return x
        self.say("dropout")
        return tf.nn.dropout(x, 0.8, seed=int(self.rng.integers(1000)))

    def dense(self, x: Any) -> Any:
        """A dense layer with its activation."""
        columns, units = int(x.shape[-1]), int(self.pick(3, 5, 8))
        with self.placed():
            self.say("dense")
            if self.chance(0.2):
                weights = tf.transpose(self.variable(units, columns))
            else:
                weights = self.variable(columns, units)
            return self.activation(self.biased(tf.matmul(x, weights), units))

    def words(self) -> Any:
        """Embedded words, [batch, steps, features]."""
        table = self.variable(WORDS, int(self.pick(4, 6)))
        steps = int(self.rng.integers(2, 6))
        self.say(f"embedding{steps}")
        look_up = self.pick(tf.nn.embedding_lookup, tf.gather)
        return look_up(table, self.word_input(steps))

    def sequence(self) -> Any:
        """Inputs of a recurrence, [batch, steps, features]."""
        return self.words() if self.chance(0.5) else self.real_input(int(self.rng.integers(2, 6)), 4)

    def recurrence(self) -> Any:
        """The last output of a recurrence over a sequence, [batch, units]."""
        x = self.sequence()
        way = self.pick("unrolled", "unrolled", "while_loop", "while_loop", "dynamic_rnn", "static_rnn")
        self.say(way)
        with self.placed():
            if way in ("unrolled", "while_loop"):
                return getattr(self, way)(x)
            cell = self.cell()
            self.count += 1
            with tf.variable_scope(f"r{self.count}", use_resource=self.is_resource):
                if way == "static_rnn":
                    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=self.dtype)
                    return self.pick(outputs[-1], tf.add_n(outputs))
                lengths = self.word_input(limit=int(x.shape[1]) + 1) if self.chance(0.4) else None
                outputs, _ = tf.nn.dynamic_rnn(cell, x, lengths, dtype=self.dtype)
                return self.pick(outputs[:, -1, :], tf.reduce_sum(outputs, 1))

    def cell(self) -> Any:
        """A cell of one or two layers."""
        cells = tf.nn.rnn_cell
        units = int(self.pick(3, 5))
        makers = {
            "rnn": lambda: cells.BasicRNNCell(units),
            "gru": lambda: cells.GRUCell(units),
            "basic_lstm": lambda: cells.BasicLSTMCell(units),
            "lstm": lambda: cells.LSTMCell(units, use_peepholes=True),
            "projected": lambda: cells.LSTMCell(units, num_proj=3, cell_clip=3.0),
        }
        name = self.pick(*makers)
        self.say(name)
        if self.chance(0.3):
            return cells.MultiRNNCell([makers[name](), makers[name]()])
        return makers[name]()

    def unrolled(self, x: Any) -> Any:
        """An LSTM or plain recurrence, a copy of its ops a time step."""
        steps, features, units = int(x.shape[1]), int(x.shape[2]), int(self.pick(4, 9))
        weights, bias = self.variable(features + units, 4 * units), self.variable(4 * units)
        h = c = tf.zeros(tf.stack([tf.shape(x)[0], units]), self.dtype)
        if self.known_batch:
            h = c = tf.zeros([BATCH, units], self.dtype)
        inputs = tf.unstack(x, axis=1) if self.chance(0.5) else [x[:, t, :] for t in range(steps)]
        outputs = []
        for x_t in inputs:
            c, h = _lstm(x_t, c, h, weights, bias)
            outputs.append(h)
        return self.pick(h, tf.add_n(outputs), tf.concat(outputs, 1)[:, -2 * units :] if steps > 1 else h)

    def while_loop(self, x: Any) -> Any:
        """The same as a loop over arrays."""
        steps, features, units = int(x.shape[1]), int(x.shape[2]), int(self.pick(4, 9))
        weights, bias = self.variable(features + units, 4 * units), self.variable(4 * units)
        inputs = tf.TensorArray(self.dtype, steps).unstack(tf.transpose(x, [1, 0, 2]))
        zeros = tf.zeros(tf.stack([tf.shape(x)[0], units]), self.dtype)
        zeros.set_shape([BATCH if self.known_batch else None, units])

        def body(t: Any, outputs: Any, c: Any, h: Any) -> Any:
            c, h = _lstm(inputs.read(t), c, h, weights, bias)
            return t + 1, outputs.write(t, h), c, h

        _, outputs, _, h = tf.while_loop(
            lambda t, *_: t < steps,
            body,
            (tf.constant(0), tf.TensorArray(self.dtype, steps), zeros, zeros),
            parallel_iterations=int(self.pick(1, 10)),
        )
        return self.pick(h, tf.reduce_sum(outputs.stack(), 0))

    def conditional(self, x: Any) -> Any:
        """One of two layers, chosen in the step."""
        self.say("cond")
        columns = int(x.shape[-1])
        first, second = self.variable(columns, 4), self.variable(columns, 4)
        bias = self.variable(4)
        return tf.cond(
            tf.reduce_sum(x) > 0.0,
            lambda: tf.nn.relu(tf.matmul(x, first) + bias),
            lambda: tf.tanh(tf.matmul(x, second)) if self.chance(0.5) else tf.matmul(x, second) * bias,
        )

    def queued(self, x: Any) -> tuple[Any, list[Any]]:
        """x by way of a queue, and what fills it."""
        self.say("queue")
        queue = tf.FIFOQueue(3 * BATCH, [x.dtype], [x.shape[1:]])
        y = queue.dequeue_many(BATCH)
        return y, [queue.enqueue_many([x])]

    # ---- losses

    def loss(self, features: Any) -> Any:
        """A loss over the features."""
        with self.placed():
            columns = int(features.shape[-1])
            logits = self.biased(tf.matmul(features, self.variable(columns, CLASSES)), CLASSES)
            way = self.pick("sparse", "dense", "mse", "sigmoid", "weighted")
            self.say(way)
            numpy = self.dtype.as_numpy_dtype
            if way in ("sparse", "weighted"):
                labels = self.word_input(limit=CLASSES)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            elif way == "mse":
                return tf.reduce_mean(tf.square(logits - self.real_input(CLASSES)))
            else:
                labels = self.feed(
                    self.dtype,
                    [BATCH if self.known_batch else None, CLASSES],
                    lambda rng: np.eye(CLASSES, dtype=numpy)[rng.integers(0, CLASSES, BATCH)],
                )
                if way == "sigmoid":
                    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
                else:
                    losses = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            if self.chance(0.2):
                self.watched.append(losses)
            if way == "weighted":
                weights = self.feed(self.dtype, [None], lambda rng: rng.random(BATCH).astype(numpy))
                return tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
            return self.pick(tf.reduce_mean, tf.reduce_sum)(losses)


def _lstm(x: Any, c: Any, h: Any, weights: Any, bias: Any) -> tuple[Any, Any]:
    i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), weights) + bias, 4, 1)
    c = c * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _sides(x: Any, layout: str) -> list[int]:
    dims = x.shape.as_list()
    return list(dims[1:3] if layout == "NHWC" else dims[2:4])


def build(seed: int, only_common: bool = False) -> Model:
    """Adds the program of this seed to the default graph; `only_common`: without random numbers in the step
    and layouts that other implementations lack on a CPU."""
    b = Builder(seed, only_common)
    tf.get_variable_scope().set_use_resource(b.is_resource)
    before: list[Any] = []
    branches = []
    for _ in range(b.pick(1, 1, 2)):
        kind = b.pick("images", "images", "recurrence", "recurrence", "words", "plain")
        if kind == "words":
            x = tf.reduce_mean(b.words(), 1)
        elif kind == "plain":
            x = b.real_input(6)
        else:
            x = getattr(b, kind)()
        branches.append(x)
    x = branches[0] if len(branches) == 1 else tf.concat(branches, 1)
    for _ in range(b.rng.integers(0, 3)):
        x = b.dense(x)
        x = b.dropped(x)
    if b.chance(0.15) and x.shape.ndims == 2:
        x = b.normalisation(x, "NHWC")
    if b.chance(0.2):
        x = b.conditional(x)
    x, before = _through_a_queue(b, x, before)
    losses = [b.loss(x) for _ in range(b.pick(1, 1, 2))]
    loss = losses[0] if len(losses) == 1 else tf.add_n(losses)
    return _trained(b, loss, losses, x, before)


def _through_a_queue(b: Builder, x: Any, before: list[Any]) -> tuple[Any, list[Any]]:
    """Joins to the features examples that come out of a queue."""
    if not b.chance(0.2):
        return x, before
    fed = b.feed(
        b.dtype,
        [BATCH, 3],
        lambda rng: rng.standard_normal((BATCH, 3)).astype(b.dtype.as_numpy_dtype),
    )
    examples, filling = b.queued(fed)
    return tf.concat([x, examples], 1), before + filling


def _trained(b: Builder, loss: Any, losses: list[Any], features: Any, before: list[Any]) -> Model:
    """The losses' gradients, clipped or not, and what the optimiser does with them."""
    variables = tf.trainable_variables()
    waits = b.chance(0.5)
    if waits and b.chance(0.6):
        b.say("l2")
        loss = loss + 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in variables])
    name = "descent" if b.chance(0.3) else b.pick(*_OPTIMIZERS)
    b.say(name)
    optimizer = _OPTIMIZERS[name]()
    pairs = [(g, v) for g, v in optimizer.compute_gradients(loss, variables) if g is not None]
    fetches = [loss, *losses, features, *b.watched]
    if b.chance(0.3):
        b.say("clipped")
        gradients, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
        pairs = [(g, v) for g, (_, v) in zip(gradients, pairs)]
        fetches.append(norm)
    if b.chance(0.3):
        b.say("gradients fetched")
        fetches += [g for g, _ in pairs[:2] if not isinstance(g, tf.IndexedSlices)]
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    waits_for = [*updates, *(fetches if waits else [])]
    if waits:
        b.say("waits")
    with tf.control_dependencies(waits_for):
        step = tf.Variable(0, trainable=False, name="step") if b.chance(0.5) else None
        train = optimizer.apply_gradients(pairs, global_step=step)

    def feeds(i: int) -> dict[Any, np.ndarray]:
        rng = np.random.default_rng([i, len(b.said)])
        return {x: draw(rng) for x, draw in b.fed}

    kinds = f"{b.dtype.name} {'resource' if b.is_resource else 'reference'}"
    said = f"{kinds}: {' '.join(b.said)}"
    tolerance = 1e-9 if b.dtype == tf.float64 else 2e-3
    return Model(said, tolerance, fetches, train, before, feeds)
