"""`tf.contrib.nccl` and `tf.contrib.all_reduce` under the names that programs import."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from flowstone.compat.tensorflow import install; install()
import tensorflow as tf
from tensorflow.contrib import nccl
from tensorflow.contrib.nccl.python.ops import nccl_ops
from tensorflow.contrib.nccl.ops import gen_nccl_ops
from tensorflow.contrib.all_reduce.python import all_reduce
from tensorflow.python.ops import collective_ops
from tensorflow.python.ops import nccl_ops as later
assert nccl.all_sum is nccl_ops.all_sum is later.all_sum is tf.contrib.nccl.all_sum
assert all_reduce.build_ring_all_reduce is tf.contrib.all_reduce.build_ring_all_reduce
with tf.device("/cpu:0"):
    one = tf.constant(1.0)
node = gen_nccl_ops.nccl_all_reduce(one, reduction="sum", num_devices=1, shared_name="x")
with tf.Session() as session:
    print(*session.run([node, collective_ops.all_reduce(one, 1, 1, 1, "Add", "Id"), nccl.all_sum([one])[0]]))
"""


def test_names_of_tensorflow() -> None:
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "1.0 1.0 1.0"
