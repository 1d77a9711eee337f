"""Skip-grams with noise-contrastive estimation, fed by a queue from a thread of the program's own."""
from __future__ import absolute_import, division, print_function
import collections
import threading

import numpy as np
import tensorflow as tf

WORDS = ("the king rules the land the queen rules the land the dog chases the cat the cat chases the mouse " * 12).split()
vocabulary_size, embedding_size, batch_size, num_sampled = 10, 8, 16, 4

count = collections.Counter(WORDS).most_common()
count.sort(key=lambda pair: (-pair[1], pair[0]))
dictionary = {word: i for i, (word, _) in enumerate(count)}
data = [dictionary[word] for word in WORDS]
vocabulary_size = len(dictionary)
pairs = np.array([(data[i], data[i + d]) for i in range(1, len(data) - 1) for d in (-1, 1)], np.int32)

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(1)
    with tf.name_scope('inputs'):
        word = tf.placeholder(tf.int32, [])
        context = tf.placeholder(tf.int32, [1])
        queue = tf.FIFOQueue(64, [tf.int32, tf.int32], shapes=[[], [1]], name="pairs")
        enqueue = queue.enqueue([word, context])
        close = queue.close(cancel_pending_enqueues=True)
        train_inputs, train_labels = queue.dequeue_many(batch_size)
    with tf.device('/cpu:0'):
        with tf.name_scope('embeddings'):
            embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
            embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        with tf.name_scope('weights'):
            nce_weights = tf.Variable(tf.truncated_normal([vocabulary_size, embedding_size],
                                                          stddev=1.0 / np.sqrt(embedding_size)))
        with tf.name_scope('biases'):
            nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    with tf.name_scope('loss'):
        loss = tf.reduce_mean(tf.nn.nce_loss(weights=nce_weights, biases=nce_biases, labels=train_labels,
                                             inputs=embed, num_sampled=num_sampled,
                                             num_classes=vocabulary_size))
    fixed = tf.nn.fixed_unigram_candidate_sampler(
        tf.cast(train_labels, tf.int64), 1, 3, True, vocabulary_size,
        unigrams=[c for _, c in count], distortion=0.75)
    sampled = tf.reduce_mean(tf.nn.sampled_softmax_loss(nce_weights, nce_biases, train_labels, embed, 3,
                                                        vocabulary_size, sampled_values=fixed))
    full = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.squeeze(train_labels, 1),
        logits=tf.matmul(embed, nce_weights, transpose_b=True) + nce_biases))
    tf.summary.scalar('loss', loss)
    with tf.name_scope('optimizer'):
        optimizer = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    normalized_embeddings = embeddings / norm
    valid = tf.constant([dictionary["king"], dictionary["cat"]])
    similarity = tf.matmul(tf.nn.embedding_lookup(normalized_embeddings, valid), normalized_embeddings,
                           transpose_b=True)
    nearby = tf.nn.top_k(similarity, 3)
    merged = tf.summary.merge_all()
    init = tf.global_variables_initializer()


def feed_pairs(session, coord):
    rng = np.random.RandomState(0)
    try:
        while not coord.should_stop():
            center, neighbour = pairs[rng.randint(len(pairs))]
            session.run(enqueue, feed_dict={word: center, context: [neighbour]})
    except tf.errors.CancelledError:
        pass
    except tf.errors.AbortedError:
        pass


with tf.Session(graph=graph) as session:
    init.run()
    coord = tf.train.Coordinator()
    thread = threading.Thread(target=feed_pairs, args=(session, coord))
    thread.daemon = True
    thread.start()
    losses, softmax = [], []
    for step in range(250):
        summary, _, loss_val, full_val = session.run([merged, optimizer, loss, full])
        losses.append(loss_val)
        softmax.append(full_val)
    print("noise-contrastive loss falls", np.mean(losses[-50:]) < np.mean(losses[:50]))
    print("full loss below the uniform guess", np.mean(softmax[-50:]) < np.log(vocabulary_size))
    print("sampled loss is a number", bool(np.isfinite(session.run(sampled))))
    values, indices = session.run(nearby)
    print("nearest is itself", [list(dictionary)[0] is not None, indices[:, 0].tolist() == session.run(valid).tolist()],
          "%.4f %.4f" % tuple(values[:, 0]))
    print(nearby._fields, normalized_embeddings.eval().shape, queue.name, train_inputs.get_shape())
    coord.request_stop()
    session.run(close)
    coord.join([thread])
    print("vocabulary", vocabulary_size, count[:2], tf.Summary.FromString(summary).value[0].tag)
