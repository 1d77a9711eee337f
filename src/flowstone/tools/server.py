"""Runs one task of a cluster as a plain server, which the sessions of other programs use.

    flowstone server --job ps --task 0 --cluster "ps=host0:2222;worker=host1:2222,host2:2222"
    TF_CONFIG='{"cluster": …, "task": {"type": "ps", "index": 0}}' flowstone server
    flowstone server                        a cluster of one task, on a free port of this machine

Who may speak to it, and how that is encrypted, is in FLOWSTONE_CLUSTER_TOKEN or in a folder of secrets
(--secrets, FLOWSTONE_CLUSTER_SECRETS): token, ca.crt, tls.crt, tls.key.

It prints the address that sessions connect to (`tf.Session("grpc://host0:2222")`) and serves until SIGTERM or
SIGINT. Steps that still run then do not keep the process: their sessions get UnavailableError.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

import flowstone as tf
from flowstone.distributed.launchers.cluster_description import Task, parse_cluster
from flowstone.distributed.launchers.task_environment import check_task, parse_tf_config
from flowstone.framework import flags

NAME = "server"
SUMMARY = "run one task of a cluster as a server"

_HEARS_SIGNALS_EVERY_S = 3600.0


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone server`."""
    add = parser.add_argument
    add(
        "--cluster",
        metavar="SPEC",
        help="the jobs' addresses: ps=h0:2222;worker=h1:2222,h2:2222 (TF_CONFIG's)",
    )
    add("--job", metavar="NAME", help="this task's job (TF_CONFIG's)")
    add("--task", type=int, metavar="N", help="this task's number (TF_CONFIG's)")
    add("--secrets", default="", metavar="FOLDER", help="with token, ca.crt, tls.crt, tls.key")
    add("--certificate-name", default="", metavar="NAME", help="of all tasks' certificates (their hosts)")
    add("--protocol", default="grpc", help="between tasks (grpc)")


def execute(options: argparse.Namespace) -> int:
    """Serves until a signal ends the process, with status 0; returns 2 if it cannot begin."""
    flags.set_cluster_secrets(options.secrets, options.certificate_name)
    try:
        place = _place(options)
        if place is None:
            task = Task("local", 0)
            server = tf.train.Server.create_local_server()
        else:
            cluster, task = place
            server = tf.train.Server(cluster, task.job, task.index, options.protocol)
    except (ValueError, tf.errors.OpError) as error:
        print(f"flowstone server: {getattr(error, 'message', error)}", file=sys.stderr)
        return 2
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    print(f"flowstone server: /job:{task.job}/task:{task.index} at {server.target}", flush=True)
    while not end.wait(_HEARS_SIGNALS_EVERY_S):
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # Python's own way out waits for all threads, and so for a step whose loop never ends


def _place(options: argparse.Namespace) -> tuple[dict[str, list[str]], Task] | None:
    """The cluster and the task; None if nobody says so."""
    text = flags.task_configuration()
    if options.cluster is None and not text:
        if options.job is not None or options.task is not None:
            raise ValueError("--job and --task need --cluster, or TF_CONFIG")
        return None
    given = None
    if options.cluster is None:
        cluster, given = parse_tf_config(text)
    else:
        cluster = parse_cluster(options.cluster)
    job = options.job or (given.job if given else None)
    if job is None:
        raise ValueError(f"say with --job which job of the cluster this is: {', '.join(cluster)}")
    index = options.task if options.task is not None else given.index if given and given.job == job else 0
    task = Task(job, index)
    if job == "evaluator" and job not in cluster:
        raise ValueError("an evaluator is no part of the cluster: it has no server")
    check_task(cluster, task)
    return cluster, task
