"""Autoencoders, variational ones and GANs: a training step, and images from codes (or images)."""

from tf1 import tf  # isort: skip
from families import generative_cases, values
from families_tf1 import optimiser, variables

from measuring import report, settled_seconds


class Networks:
    """The two networks over the same variables, however often applied."""

    def __init__(self, model, p):
        self.model, self.p = model, p
        self.depth = len(model.filters or model.hidden)
        self.activation = getattr(tf.nn, model.activation)

    def encoder(self, x):
        for i in range(self.depth):
            x = self.activation(self.layer(f"encoder{i}", x))
        if self.model.filters:
            x = tf.reshape(x, [-1, self.p[f"encoder{self.depth}"].shape[0]])
        return self.layer(f"encoder{self.depth}", x)

    def decoder(self, z):
        x = self.layer("decoder0", z)
        if self.model.filters:
            x = tf.reshape(x, [-1, *self.model.smallest])
        for i in range(1, self.depth + 1):
            x = self.layer(f"decoder{i}", self.activation(x))
        return x

    def layer(self, name, x):
        weights, bias = self.p[name], self.p[name + "_bias"]
        if weights.shape.ndims == 2:
            return tf.nn.bias_add(tf.matmul(x, weights), bias)
        if name.startswith("encoder"):
            return tf.nn.bias_add(tf.nn.conv2d(x, weights, [1, 2, 2, 1], "SAME"), bias)
        _, height, width, _ = x.shape.as_list()
        shape = [self.model.batch, 2 * height, 2 * width, weights.shape.as_list()[2]]
        x = tf.nn.conv2d_transpose(x, weights, shape, [1, 2, 2, 1], "SAME")
        if name + "_scale" in self.p:
            return tf.nn.fused_batch_norm(x, self.p[name + "_scale"], bias, epsilon=1e-3)[0]
        return tf.nn.bias_add(x, bias)


def entropy(labels, logits):
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


def autoencoder(model, networks, x, z):
    """The loss, and its variables; the images of codes."""
    decoded = tf.sigmoid(networks.decoder(networks.encoder(x)))
    return [(tf.reduce_mean(tf.squared_difference(decoded, x)), "")], decoded


def variational(model, networks, x, z):
    mean, logarithm = tf.split(networks.encoder(x), 2, 1)
    noise = tf.placeholder_with_default(
        tf.random_normal(tf.shape(mean), dtype=x.dtype), z.shape, name="noise"
    )
    logits = networks.decoder(mean + tf.exp(0.5 * logarithm) * noise)
    divergence = -0.5 * tf.reduce_sum(1 + logarithm - tf.square(mean) - tf.exp(logarithm))
    loss = (tf.reduce_sum(entropy(x, logits)) + divergence) / model.batch
    return [(loss, "")], tf.sigmoid(networks.decoder(z))


def adversarial(model, networks, x, z):
    images = tf.sigmoid(networks.decoder(z))
    real, drawn = networks.encoder(x), networks.encoder(images)
    judged = entropy(tf.ones_like(real), real) + entropy(tf.zeros_like(drawn), drawn)
    deceived = tf.reduce_mean(entropy(tf.ones_like(drawn), drawn))
    return [(tf.reduce_mean(judged), "encoder"), (deceived, "decoder")], images


def measure(label, model):
    p = variables(values(model.shapes(), model.dtype))
    images, codes = model.data()
    x = tf.placeholder(model.dtype, images.shape)
    z = tf.placeholder(model.dtype, codes.shape)
    losses, found = globals()[model.kind](model, Networks(model, p), x, z)
    steps = []
    for loss, prefix in losses:
        own = [variable for name, variable in p.items() if name.startswith(prefix)]
        steps.append([optimiser(model.optimiser, model.rate).minimize(loss, var_list=own), loss])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {x: images, z: codes} if model.kind == "adversarial" else {x: images}
        known = {"noise:0": codes} if model.kind == "variational" else {}

        def step(more=None):
            return [float(session.run(fetches, {**feeds, **(more or {})})[1]) for fetches in steps]

        def decode():
            return session.run(found, {x: images} if model.kind == "autoencoder" else {z: codes})

        print("losses" + label, *[step(known) for _ in range(3)])
        report("step" + label, settled_seconds(step) * 1e3, "ms")
        report("images" + label, settled_seconds(decode) * 1e3, "ms")


for label, model in generative_cases():
    with tf.Graph().as_default():
        measure(label, model)
