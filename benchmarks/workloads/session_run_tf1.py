"""What `Session.run` itself costs."""

from tf1 import tf  # isort: skip
from measuring import median_of_many, report

x = tf.placeholder(tf.float32, [])
y = x + 1.0
nothing = tf.no_op()
session = tf.Session()
report("no-op", median_of_many(lambda: session.run(nothing)) * 1e6, "us")
report("add", median_of_many(lambda: session.run(y, {x: 2.0})) * 1e6, "us")
call = session.make_callable(y, [x])
report("add by callable", median_of_many(lambda: call(2.0)) * 1e6, "us")
