"""`tf.test.create_local_cluster` against what TensorFlow's users do with it."""

from __future__ import annotations

import flowstone as tf


def test_workers_share_what_a_parameter_server_holds() -> None:
    workers, parameter_servers = tf.test.create_local_cluster(num_workers=2, num_ps=2)
    assert [len(workers), len(parameter_servers)] == [2, 2]
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            total = tf.Variable(1, name="total")
        with tf.device("/job:worker/task:1"):
            add = total.assign_add(2)
        with tf.Session(workers[0].target) as session:
            session.run(total.initializer)
            assert session.run(add) == 3
        with tf.Session(parameter_servers[0].target) as session:
            assert session.run(total) == 3


def test_the_configuration_of_a_job_is_that_of_its_tasks() -> None:
    workers, parameter_servers = tf.test.create_local_cluster(
        1, 1, worker_config=tf.ConfigProto(device_count={"CPU": 2})
    )
    with tf.Session(workers[0].target) as session:
        names = [device.name for device in session.list_devices()]
    assert sum("/job:worker/" in name for name in names) == 2
    assert parameter_servers[0].target.startswith("grpc://localhost:")


def test_a_cluster_of_one_task_finds_its_own_port() -> None:
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        assert session.run(tf.constant(2) + 3) == 5
