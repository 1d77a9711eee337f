"""TFRecord and CSV files read by queues: writers, readers, shuffle_batch, batch_join, bucketed and limited."""
import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value if isinstance(value, list) else [value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def convert_to(name, start):
    filename = os.path.join(folder, name + '.tfrecords')
    writer = tf.python_io.TFRecordWriter(filename)
    for index in range(start, start + 6):
        image_raw = np.full([2, 3], index, np.uint8).tostring()
        example = tf.train.Example(features=tf.train.Features(feature={
            'height': _int64_feature(2), 'label': _int64_feature(index % 3), 'image_raw': _bytes_feature(image_raw),
            'scores': tf.train.Feature(float_list=tf.train.FloatList(value=[index * .5] * (index % 4))),
            'name': _bytes_feature(tf.compat.as_bytes('item%d' % index))}))
        writer.write(example.SerializeToString())
    writer.close()
    return filename


files = [convert_to('train', 0), convert_to('validation', 6)]
for string_record in tf.python_io.tf_record_iterator(path=files[0]):
    example = tf.train.Example()
    example.ParseFromString(string_record)
    print(example.features.feature['label'].int64_list.value[0],
          len(example.features.feature['scores'].float_list.value), end=' ')
print()


def read_and_decode(filename_queue):
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(filename_queue)
    features = tf.parse_single_example(serialized_example, features={
        'image_raw': tf.FixedLenFeature([], tf.string), 'label': tf.FixedLenFeature([], tf.int64),
        'scores': tf.VarLenFeature(tf.float32), 'name': tf.FixedLenFeature([], tf.string)})
    image = tf.decode_raw(features['image_raw'], tf.uint8)
    image.set_shape([6])
    image = tf.cast(image, tf.float32) * (1. / 255) - 0.5
    return image, tf.cast(features['label'], tf.int32), features['scores'], features['name']


with tf.Graph().as_default():
    filename_queue = tf.train.string_input_producer(files, num_epochs=2, shuffle=True, seed=3)
    image, label, scores, name = read_and_decode(filename_queue)
    images, sparse_labels, names = tf.train.shuffle_batch(
        [image, label, name], batch_size=5, num_threads=2, capacity=1000 + 3 * 5, min_after_dequeue=8,
        allow_smaller_final_batch=True)
    init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
    sess = tf.Session()
    sess.run(init_op)
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    seen, sizes = [], []
    try:
        while not coord.should_stop():
            got, image_values = sess.run([names, images])
            seen.extend(got)
            sizes.append(len(image_values))
    except tf.errors.OutOfRangeError:
        print('Done training for 2 epochs,', len(seen), 'examples', len(set(seen)), 'different, last', sizes[-1])
    finally:
        coord.request_stop()
    coord.join(threads)
    sess.close()

with tf.Graph().as_default():
    queue = tf.train.string_input_producer(files, num_epochs=1, shuffle=False)
    image, label, scores, name = read_and_decode(queue)
    batch = tf.train.batch([name, scores, label], 4, dynamic_pad=True, allow_smaller_final_batch=True)
    _, label, _, _ = read_and_decode(tf.train.string_input_producer(files, num_epochs=1, shuffle=False))
    length, bucketed = tf.contrib.training.bucket_by_sequence_length(
        tf.minimum(label + 1, 3), [tf.range(label + 1)], 2, [1, 2], dynamic_pad=True, allow_smaller_final_batch=True)
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator()) as sess:
        rows = 0
        while not sess.should_stop() and rows < 2:
            values = sess.run(batch)
            print(values[0].tolist(), tf.SparseTensorValue(*values[1]).dense_shape.tolist(), values[2].tolist())
            rows += 1
        padded_batches = []
        try:
            while True:
                n, padded = sess.run([length, bucketed])
                padded_batches.append((n.tolist(), padded[0].tolist()))
        except tf.errors.OutOfRangeError:
            print(sorted(padded_batches))

csv_files = []
for part in range(2):
    csv_files.append(os.path.join(folder, 'part%d.csv' % part))
    with open(csv_files[-1], 'w') as f:
        f.write('a,b,c\n')
        f.writelines('%d,%.1f,w%d\n' % (i, i / 2, i) if i % 3 else '%d,,w%d\n' % (i, i) for i in range(part * 4, part * 4 + 4))
with tf.Graph().as_default() as graph:
    reader = tf.TextLineReader(skip_header_lines=1)
    matched = tf.train.match_filenames_once(os.path.join(folder, 'part*.csv'))
    filename_queue = tf.train.string_input_producer(matched, shuffle=False, num_epochs=1)
    key, value = reader.read(filename_queue)
    columns = tf.decode_csv(value, record_defaults=[[1], [-1.0], ['']])
    joined = tf.train.batch_join([columns + [key]], 3, allow_smaller_final_batch=True)
    limited = tf.train.limit_epochs(tf.constant([7]), num_epochs=2)
    ranged = tf.train.range_input_producer(5, shuffle=False).dequeue()
    sliced = tf.train.slice_input_producer([np.arange(10, 13), np.eye(3)], shuffle=False)
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            while True:
                a, b, c, k = sess.run(joined)
                print(a.tolist(), b.tolist(), c.tolist(), [os.path.basename(x.decode()) for x in k])
        except tf.errors.OutOfRangeError as error:
            print(type(error).__name__, error.error_code)
        print([sess.run(limited).tolist() for _ in range(2)], [int(sess.run(ranged)) for _ in range(6)])
        print([int(sess.run(sliced)[0]) for _ in range(4)])
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=5)
    print(sorted(op.type for op in graph.get_operations() if 'Queue' in op.type and 'V2' in op.type)[:4],
          len(graph.get_collection(tf.GraphKeys.QUEUE_RUNNERS)))
