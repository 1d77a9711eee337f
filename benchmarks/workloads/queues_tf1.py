"""Examples through queues that two queue runners' threads fill: mean time of an example in dequeue_many(128).

They go in one by one, 128 together (as they come out), or 100 together (so that every batch is put together).
"""

from tf1 import tf  # isort: skip
from shapes import EXAMPLE, QUEUE_BATCH, QUEUE_PART, examples

from measuring import report, sustained_seconds


def fill(queue, together):
    images, labels = map(tf.constant, examples(max(together, 1)))
    enqueue = queue.enqueue_many([images, labels]) if together else queue.enqueue([images[0], labels[0]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * 2))


def us(make, together):
    """Microseconds of an example; the batch is made, but not fetched."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = make([tf.float32, tf.int32], [[EXAMPLE], []])
        fill(queue, together)
        batch = tf.group(*queue.dequeue_many(QUEUE_BATCH))
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        seconds = sustained_seconds(lambda: session.run(batch))
        coordinator.request_stop()
        session.run(queue.close(cancel_pending_enqueues=True))
        coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
    return seconds / QUEUE_BATCH * 1e6


def fifo(types, shapes):
    return tf.FIFOQueue(2000, types, shapes)


def shuffling(types, shapes):
    return tf.RandomShuffleQueue(2000, 500, types, shapes)


for name, make in (("FIFOQueue", fifo), ("RandomShuffleQueue", shuffling)):
    report(f"{name}, enqueue", us(make, 0), "us/example")
    report(f"{name}, enqueue_many", us(make, QUEUE_BATCH), "us/example")
    report(f"{name}, enqueue_many of {QUEUE_PART}", us(make, QUEUE_PART), "us/example")
