"""q_network: a training step (with the target network), and the choice of an action for one observation."""

from tf1 import tf  # isort: skip
from families import q_network_cases, values
from families_tf1 import optimiser, variables

from measuring import report, settled_seconds


def action_values(model, p, prefix, x):
    activation = getattr(tf.nn, model.activation)
    for i in range(len(model.hidden) + 1):
        x = tf.matmul(activation(x) if i else x, p[f"{prefix}{i}"]) + p[f"{prefix}{i}_bias"]
    return x


def measure(label, model):
    p = variables(values(model.shapes(), model.dtype))
    fed = model.transitions()
    feeds = [tf.placeholder(value.dtype, [None, *value.shape[1:]]) for value in fed]
    observed, actions, rewards, following, ends = feeds
    predicted = action_values(model, p, "value", observed)
    best = tf.reduce_max(action_values(model, p, "target", following), 1)
    targets = tf.stop_gradient(rewards + (1 - ends) * model.discount * best)
    chosen = tf.reduce_sum(predicted * tf.one_hot(actions, model.actions, dtype=model.dtype), 1)
    if model.huber:
        loss = tf.losses.huber_loss(targets, chosen)
    else:
        loss = tf.reduce_mean(tf.square(targets - chosen))
    own = [p[name] for name in p if name.startswith("value")]
    train = optimiser(model.optimiser, model.rate).minimize(loss, var_list=own)
    action = tf.argmax(predicted, 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        def step():
            return session.run([train, loss], dict(zip(feeds, fed)))[1]

        def act():
            return session.run(action, {observed: fed[0][:1]})

        print("losses" + label, *[step() for _ in range(3)])
        report("step" + label, settled_seconds(step) * 1e3, "ms")
        report("action" + label, settled_seconds(act) * 1e3, "ms")


for label, model in q_network_cases():
    with tf.Graph().as_default():
        measure(label, model)
