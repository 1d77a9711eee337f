"""A test file of a program: tf.test.TestCase with test_session, gradient checks, parametrised cases, HParams and flags."""
from __future__ import absolute_import, division, print_function
import math
import os
import sys
import unittest

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tensorflow.python.framework import constant_op, dtypes, test_util
from tensorflow.python.ops import array_ops, gradient_checker, variables
from tensorflow.python.platform import test

flags = tf.app.flags
flags.DEFINE_integer("width", 3, "how wide")
flags.DEFINE_list("names", ["a", "b"], "names")
flags.DEFINE_enum("mode", "train", ["train", "eval"], "what to do")
FLAGS = flags.FLAGS


def swish(x, beta=1.0, name=None):
    with tf.name_scope(name, "swish", [x, beta]):
        return x * tf.sigmoid(beta * x)


def spectral_norm(w, iteration=2):
    w_shape = w.shape.as_list()
    w = tf.reshape(w, [-1, w_shape[-1]])
    u = tf.get_variable("u", [1, w_shape[-1]], initializer=tf.ones_initializer(), trainable=False)
    u_hat = u
    for _ in range(iteration):
        v_hat = tf.nn.l2_normalize(tf.matmul(u_hat, tf.transpose(w)))
        u_hat = tf.nn.l2_normalize(tf.matmul(v_hat, w))
    sigma = tf.matmul(tf.matmul(v_hat, w), tf.transpose(u_hat))
    with tf.control_dependencies([u.assign(tf.stop_gradient(u_hat))]):
        return tf.reshape(w / sigma, w_shape)


def memory_efficient(fn):
    """Recomputes what `fn` computed when gradients ask for it."""
    @tf.custom_gradient
    def inner(x):
        y = fn(x)

        def grad(dy):
            with tf.control_dependencies([dy]):
                again = tf.identity(x)
            return tf.gradients(fn(again), again, dy)[0]
        return y, grad
    return inner


class SwishTest(tf.test.TestCase):
    def setUp(self):
        super(SwishTest, self).setUp()
        tf.reset_default_graph()
        self.values = np.linspace(-3, 3, 7).astype(np.float32)

    def testValues(self):
        with self.test_session() as sess:
            x = tf.placeholder(tf.float32, [None])
            got = sess.run(swish(x), {x: self.values})
        self.assertAllClose(got, self.values / (1 + np.exp(-self.values)))
        self.assertEqual((7,), got.shape)

    def testGradient(self):
        with self.test_session(use_gpu=False):
            x = tf.constant(self.values)
            error = tf.test.compute_gradient_error(x, [7], swish(x), [7], x_init_value=self.values)
            self.assertLess(error, 1e-3)
            theoretical, numeric = gradient_checker.compute_gradient(x, [7], swish(x), [7], delta=1e-2)
            self.assertArrayNear(np.diag(theoretical), np.diag(numeric), 1e-2)

    def testErrors(self):
        with self.test_session():
            x = tf.placeholder(tf.float32, [2])
            with self.assertRaisesRegexp(ValueError, "Dimensions must be equal|incompatible|must be compatible"):
                _ = x + tf.ones([3])
            with self.assertRaisesOpError("negative"):
                tf.assert_non_negative(tf.constant([-1.]), message="negative").run()
            with self.assertRaises(tf.errors.FailedPreconditionError):
                variables.Variable(1.).eval()

    def testDefaultSession(self):
        with self.session() as sess:
            self.assertIs(sess, tf.get_default_session())
            self.assertAllEqual([1, 2], tf.constant([1, 2]).eval())
            self.assertAllInRange(tf.random_uniform([20], 2, 3).eval(), 2, 3)
        self.assertIsNone(tf.get_default_session())

    def testTempDir(self):
        path = os.path.join(self.get_temp_dir(), "file")
        with tf.gfile.Open(path, "w") as f:
            f.write("text")
        self.assertTrue(tf.gfile.Exists(path))
        self.assertStartsWith(path, tf.test.get_temp_dir())
        self.assertProtoEquals("node {name: 'a' op: 'NoOp'}", tf.GraphDef(node=[tf.NodeDef(name="a", op="NoOp")]))


class SpectralNormTest(tf.test.TestCase, parameterized.TestCase):
    @parameterized.parameters((4, 3), (2, 5))
    def testLargestIsOne(self, rows, columns):
        with tf.Graph().as_default(), self.test_session() as sess:
            w = tf.get_variable("w", initializer=np.random.RandomState(rows).randn(rows, columns).astype(np.float32))
            normed = spectral_norm(w)
            sess.run(tf.global_variables_initializer())
            for _ in range(40):
                value = sess.run(normed)
            self.assertAllClose(np.linalg.svd(value)[1][0], 1.0, atol=1e-4)
            tf.get_variable_scope().reuse_variables()
            self.assertAllClose(np.linalg.norm(tf.get_variable("u").eval()), 1., rtol=1e-5)

    @parameterized.named_parameters(("Relu", tf.nn.relu), ("Tanh", tf.tanh))
    def testRecomputes(self, fn):
        with tf.Graph().as_default(), self.test_session():
            x = tf.constant([[.3, -.4]])
            w = tf.constant([[1., 2.], [3., 4.]])
            plain = fn(tf.matmul(x, w))
            again = memory_efficient(lambda v: fn(tf.matmul(v, w)))(x)
            self.assertAllClose(plain.eval(), again.eval())
            self.assertAllClose(tf.gradients(plain, x)[0].eval(), tf.gradients(again, x)[0].eval())


class HParamsTest(test.TestCase):
    def testParse(self):
        hparams = tf.contrib.training.HParams(rate=.1, layers=[1, 2], name="x", on=True)
        hparams.parse("rate=0.5,layers=[3,4],on=false").set_hparam("name", "y")
        self.assertEqual({"rate": .5, "layers": [3, 4], "name": "y", "on": False}, hparams.values())
        self.assertIn("rate", hparams)
        hparams.override_from_dict({"rate": .25})
        hparams.add_hparam("units", 7)
        self.assertEqual(7, tf.contrib.training.HParams().parse_json("{}") and hparams.units)
        with self.assertRaises(ValueError):
            hparams.parse("unknown=3")

    def testFlags(self):
        self.assertEqual(3, FLAGS.width)
        self.assertEqual(["a", "b"], FLAGS.names)
        FLAGS.width = 4
        self.assertEqual((4, "train"), (FLAGS.width, FLAGS.mode))

    def testScopesAndNames(self):
        with tf.Graph().as_default() as g:
            with tf.variable_scope("a", regularizer=tf.contrib.layers.l2_regularizer(.5), dtype=dtypes.float64) as vs:
                with tf.variable_scope("b", default_name="c"), tf.name_scope("d"):
                    v = tf.get_variable("v", [2], initializer=tf.constant_initializer(2.))
                    t = constant_op.constant(1., name="t")
                with tf.variable_scope(None, default_name="unit"), tf.variable_scope(vs, auxiliary_name_scope=False):
                    u = tf.get_variable("u", initializer=lambda: tf.zeros([1]))
            names = [v.op.name, t.op.name, u.op.name, array_ops.identity(t, name="t").op.name]
            self.assertEqual(["a/b/v", "a/b/d/t", "a/u", "t"], names)
            self.assertEqual(dtypes.float64, v.dtype.base_dtype)
            losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
            with self.session(graph=g):
                tf.global_variables_initializer().run()
                self.assertAllClose([2.], [l.eval() for l in losses][:1])
        self.assertNear(math.e, 2.718, 1e-3)

    @unittest.skip("never")
    def testSkipped(self):
        self.fail()


class Quiet(unittest.TextTestRunner):
    def run(self, suite):
        result = unittest.TestResult()
        suite.run(result)
        for case, trace in result.failures + result.errors:
            print(case.id(), trace)
        print("ran", result.testsRun, "failed", len(result.failures), "errors", len(result.errors), "skipped", len(result.skipped))
        return result


if __name__ == "__main__":
    FLAGS(sys.argv)
    Quiet().run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
