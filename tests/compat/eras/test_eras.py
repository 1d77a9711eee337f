"""The forms of TensorFlow 0.x: each reading of a call, and the refusal where there are two."""

from __future__ import annotations

from pathlib import Path

from installed_programs import run


def test_losses() -> None:
    run("""
        import numpy as np
        import tensorflow as tf
        logits = tf.constant([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
        labels, classes = tf.constant([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), tf.constant([1, 2])
        nn = tf.nn
        pairs = [
            (nn.softmax_cross_entropy_with_logits(logits, labels),
             nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)),
            (nn.softmax_cross_entropy_with_logits(logits, labels, "named"),
             nn.softmax_cross_entropy_with_logits(None, labels, logits)),
            (nn.softmax_cross_entropy_with_logits(logits, labels, 1),
             nn.softmax_cross_entropy_with_logits(logits=logits, labels=labels, dim=1)),
            (nn.sparse_softmax_cross_entropy_with_logits(logits, classes, name="s"),
             nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)),
            (nn.sigmoid_cross_entropy_with_logits(logits, labels),
             nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)),
            (nn.sigmoid_cross_entropy_with_logits(logits, targets=labels),
             nn.sigmoid_cross_entropy_with_logits(logits=logits, targets=labels)),
        ]
        with tf.Session() as session:
            for old, new in session.run(pairs):
                assert np.array_equal(old, new)
        try:
            nn.weighted_cross_entropy_with_logits(logits, labels, 2.0)
        except ValueError as error:
            assert "(logits, targets, pos_weight)" in str(error)
            assert "(targets, logits, pos_weight)" in str(error)
        else:
            raise AssertionError
        nn.weighted_cross_entropy_with_logits(targets=labels, logits=logits, pos_weight=2.0)
    """)


def test_sampled_losses() -> None:
    run("""
        import numpy as np
        import tensorflow as tf
        weights, biases = tf.ones([5, 2]), tf.zeros([5])
        inputs, labels = tf.constant([[1.0, 2.0]]), tf.constant([[3]], tf.int64)
        sampled = (tf.constant([0, 1], tf.int64), tf.constant([[0.5]]), tf.constant([0.5, 0.5]))
        for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):
            old = loss(weights, biases, inputs, labels, 2, 5, sampled_values=sampled)
            new = loss(weights, biases, labels, inputs, 2, 5, sampled_values=sampled)
            named = loss(weights=weights, biases=biases, labels=labels, inputs=inputs, num_sampled=2,
                         num_classes=5, sampled_values=sampled)
            with tf.Session() as session:
                a, b, c = session.run([old, new, named])
                assert np.array_equal(a, b) and np.array_equal(a, c)
            try:
                loss(weights, biases, inputs, inputs, 2, 5)
            except ValueError as error:
                assert "(weights, biases, inputs, labels)" in str(error), error
            else:
                raise AssertionError
    """)


def test_images_products_and_reversals() -> None:
    run("""
        import numpy as np
        import tensorflow as tf
        image = tf.reshape(tf.range(48.0), [4, 4, 3])
        shapes = [
            tf.image.resize_images(image, 2, 3), tf.image.resize_images(image, [2, 3]),
            tf.image.resize_images(image, 2, 3, tf.image.ResizeMethod.AREA),
            tf.image.resize_images(image, new_height=2, new_width=3),
            tf.image.resize_images(images=image, size=[2, 3], method=1),
            tf.image.random_crop(image, [2, 3]),
        ]
        assert all(each.shape.as_list() == [2, 3, 3] for each in shapes)
        assert tf.image.per_image_whitening is tf.image.per_image_standardization
        x, y = tf.ones([2, 3, 4]), tf.ones([2, 3, 5])
        assert tf.batch_matmul(x, y, adj_x=True).shape.as_list() == [2, 4, 5]
        assert tf.batch_matmul(y, x, True).shape.as_list() == [2, 5, 4]
        m = tf.constant([[1, 2], [3, 4]])
        with tf.Session() as session:
            old = [tf.reverse(m, [False, True]), tf.reverse(m, dims=[False, True]),
                   tf.reverse(m, tf.constant([False, True])), tf.reverse(m, [1]), tf.reverse(m, axis=[-1])]
            for value in session.run(old):
                assert value.tolist() == [[2, 1], [4, 3]]
    """)


def test_recurrent_networks() -> None:
    run("""
        import tensorflow as tf
        from tensorflow.models.rnn import linear, rnn, rnn_cell, seq2seq
        import tensorflow.models.rnn.rnn_cell as again
        assert again is rnn_cell or again.BasicLSTMCell is rnn_cell.BasicLSTMCell
        cell = rnn_cell.BasicLSTMCell(4, 0.0, 3)
        assert cell.state_size == 8
        assert rnn_cell.BasicLSTMCell(4, input_size=3).state_size == 8
        assert rnn_cell.BasicLSTMCell(4, input_size=3, state_is_tuple=True).state_size == (4, 4)
        assert tf.nn.rnn_cell.BasicLSTMCell(4).state_size == (4, 4)
        assert tf.nn.rnn_cell.BasicLSTMCell(4, 1.0, False).state_size == 8
        assert rnn_cell.LSTMCell(4, 3, use_peepholes=True).state_size == 8
        assert rnn_cell.LSTMCell(4, True).state_size == (4, 4)
        assert rnn_cell.GRUCell(4, 3).state_size == 4
        assert rnn_cell.BasicRNNCell(4, input_size=3).output_size == 4
        assert rnn_cell.MultiRNNCell([cell] * 2).state_size == 16
        assert rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(4)]).state_size == ((4, 4),)
        inputs = [tf.ones([2, 3]), tf.ones([2, 3])]
        outputs, state = tf.nn.rnn(cell, inputs, initial_state=cell.zero_state(2, tf.float32))
        assert len(outputs) == 2 and state.shape.as_list() == [2, 8]
        assert rnn.rnn is tf.nn.rnn is tf.nn.static_rnn
        assert tf.nn.bidirectional_rnn is tf.nn.static_bidirectional_rnn
        assert tf.nn.state_saving_rnn is tf.nn.static_state_saving_rnn
        assert tf.nn.seq2seq is tf.contrib.legacy_seq2seq and seq2seq.rnn_decoder is tf.nn.seq2seq.rnn_decoder
        with tf.variable_scope("l"):
            assert linear.linear([tf.ones([2, 3])], 5, True).shape.as_list() == [2, 5]
        assert tf.nn.deconv2d is tf.nn.conv2d_transpose
        assert tf.nn.rnn_cell.EmbeddingWrapper is tf.contrib.rnn.EmbeddingWrapper
    """)


def test_names_that_only_changed_or_are_gone(tmp_path: Path) -> None:
    run(f"""
        import tensorflow as tf
        assert tf.types.float32 is tf.float32 and tf.concat_v2 is tf.concat
        assert tf.train.SummaryWriter is tf.summary.FileWriter
        assert tf.train.SummaryWriter({str(tmp_path)!r}, tf.Graph().as_graph_def())
        for name, text in [
            ("tf.lite", "flowstone does not have the name tf.lite, which TensorFlow 1.13 and later had: use"),
            ("tf.nn.nothing", "flowstone does not have the name tf.nn.nothing"),
            ("tf.train.nothing", "flowstone does not have the name tf.train.nothing"),
        ]:
            try:
                eval(name)
            except AttributeError as error:
                assert str(error).startswith(text), error
            else:
                raise AssertionError
    """)


def test_batches_and_examples() -> None:
    run("""
        import tensorflow as tf
        with tf.Graph().as_default():
            a = tf.train.batch(tensor_list=[tf.constant(1)], batch_size=2)
            assert a.shape.as_list() == [2]
            tf.train.shuffle_batch(tensor_list=[a], batch_size=2, capacity=9, min_after_dequeue=2)
            tf.train.batch_join(tensor_list_list=[[tf.constant(1)]], batch_size=2)
        features = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))}
        example = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
        parsed = tf.parse_single_example(example, dense_keys=["image", "label"],
                                         dense_types=[tf.string, tf.int64])
        ragged = tf.parse_example([example], sparse_keys=["label"], sparse_types=[tf.int64],
                                  dense_keys=["more"], dense_types=[tf.float32], dense_shapes=[[2]],
                                  dense_defaults={"more": [1.0, 2.0]})
        with tf.Session() as session:
            assert session.run(parsed) == {"image": b"x", "label": 7}
            values = session.run(ragged)
            assert values["label"].values.tolist() == [7] and values["more"].tolist() == [[1.0, 2.0]]
    """)


def test_the_reader_of_the_penn_treebank(tmp_path: Path) -> None:
    for part, text in (("train", "a b a\nc a\n"), ("valid", "a z b\n"), ("test", "c\n")):
        (tmp_path / f"ptb.{part}.txt").write_text(text)
    run(f"""
        from tensorflow.models.rnn.ptb import reader
        train, valid, test, words = reader.ptb_raw_data({str(tmp_path)!r})
        assert words == 4 and train == [0, 2, 0, 1, 3, 0, 1] and (valid, test) == ([0, 2, 1], [3, 1])
        pairs = [(x.tolist(), y.tolist()) for x, y in reader.ptb_iterator(range(10), 2, 2)]
        assert pairs == [([[0, 1], [5, 6]], [[1, 2], [6, 7]]), ([[2, 3], [7, 8]], [[3, 4], [8, 9]])]
        try:
            next(reader.ptb_iterator(range(4), 2, 2))
        except ValueError as error:
            assert "decrease batch_size" in str(error)
        else:
            raise AssertionError
    """)
