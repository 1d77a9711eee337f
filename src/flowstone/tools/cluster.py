"""Starts the tasks of a cluster, all with one program, and ends them.

    flowstone cluster up --workers 4 --ps 1 program.py [arguments]
    flowstone cluster up --ray --workers 4 --ps 1 program.py [arguments]
    flowstone cluster config [--kubernetes --image IMAGE] --workers 4 --ps 1 program.py [arguments]
    flowstone cluster task [--slurm --workers 4 --ps 1] program.py [arguments]

`up` runs the cluster on this machine, or on Ray, and shows each task's output under its name. `config` prints
what each task needs to know. `task` runs one task, whose place in the cluster TF_CONFIG or Slurm says.

Each task finds its place in the variable TF_CONFIG. In the program's arguments {job}, {task}, {ps_hosts},
{worker_hosts} and {JOB_hosts} stand for it, too; --flags appends --job_name, --task_index, --ps_hosts and
--worker_hosts instead. Without a program the tasks are servers, which other programs use.

The tasks of `up` know each other by a token that is made for them, unless FLOWSTONE_CLUSTER_TOKEN says
another one (or, empty, none). A folder of secrets (--secrets, FLOWSTONE_CLUSTER_SECRETS) has a token of yours
and certificates: token, ca.crt, tls.crt, tls.key.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from flowstone.distributed.launchers import kubernetes, slurm
from flowstone.distributed.launchers.cluster_description import (
    PASSIVE_JOBS,
    ClusterDescription,
    Program,
    Task,
    parse_cluster,
    parse_job_count,
)
from flowstone.distributed.launchers.local_processes import run_locally
from flowstone.distributed.launchers.outcome import ClusterOutcome
from flowstone.distributed.launchers.task_environment import (
    parse_tf_config,
    task_command,
    task_variables,
    tf_config_lines,
)
from flowstone.distributed.launchers.task_output import TaskOutput
from flowstone.distributed.wire.cluster_security import cluster_security
from flowstone.framework import errors, flags

NAME = "cluster"
SUMMARY = "start the tasks of a cluster: here, on Ray, Kubernetes or Slurm"

_BROKEN_PIPE = 141
_INTERRUPTED = 130


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the actions of `flowstone cluster`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _declare_up(actions.add_parser("up", help="run a cluster to its end, on this machine or on Ray"))
    _declare_config(actions.add_parser("config", help="print TF_CONFIG of each task, or a manifest"))
    _declare_task(actions.add_parser("task", help="run one task, as TF_CONFIG or Slurm says"))


def _declare_up(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _declare_jobs(parser)
    add("--restarts", type=int, default=0, metavar="N", help="starts of a task again that died (0)")
    add("--threads", type=_positive, metavar="N", help="of each task's kernels (a share of the cores)")
    add("--logs", metavar="FOLDER", help="for a file a task (a new folder for temporary files)")
    add("--grace-seconds", type=float, default=10.0, metavar="S", help="between SIGTERM and SIGKILL (10)")
    add("--ray", action="store_true", help="on Ray instead of this machine")
    add(
        "--ray-address",
        metavar="ADDRESS",
        help="of the Ray cluster (a running one, else one of this machine)",
    )
    add("--ship", metavar="FOLDER", help="copied to Ray's machines, where the tasks run in it")
    add("--cpus", type=float, default=0.0, metavar="N", help="that Ray keeps for a task (0)")
    add("--gpus", type=float, default=0.0, metavar="N", help="that Ray keeps for a task (0)")
    _declare_program(parser)
    parser.set_defaults(act=_up)


def _declare_config(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _declare_jobs(parser)
    add(
        "--cluster", metavar="SPEC", help="the addresses instead of counts: ps=h0:2222;worker=h1:2222,h2:2222"
    )
    add("--port", type=_positive, default=2222, metavar="N", help="of tasks without an address (2222)")
    add("--kubernetes", action="store_true", help="a manifest for kubectl instead of lines for a shell")
    add("--image", default="flowstone", help="the container image of the manifest (flowstone)")
    add("--secret", default="", metavar="NAME", help="the Secret with token and certificates in the manifest")
    add("--name", default="flowstone", help="of the cluster in the manifest (flowstone)")
    add("--restarts", type=int, default=0, metavar="N", help="in the manifest (0)")
    add("--gpus", type=int, default=0, metavar="N", help="of a task in the manifest (0)")
    _declare_program(parser)
    parser.set_defaults(act=_config)


def _declare_task(parser: argparse.ArgumentParser) -> None:
    _declare_jobs(parser)
    parser.add_argument("--slurm", action="store_true", help="ask Slurm's variables, not TF_CONFIG")
    _declare_program(parser)
    parser.set_defaults(act=_task)


def _declare_jobs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--workers", type=int, default=0, metavar="N", help="tasks of the job worker")
    add("--ps", type=int, default=0, metavar="N", help="parameter servers, ended after all others")
    add("--chief", action="store_true", help="a chief beside the workers, as Estimators have")
    add("--master", action="store_true", help="a master beside the workers, as tf.contrib.learn has")
    add("--evaluator", action="store_true", help="an evaluator, outside the cluster")
    add("--job", type=_job, action="append", default=[], metavar="JOB=N", help="tasks of another job")
    add("--secrets", default="", metavar="FOLDER", help="with token, ca.crt, tls.crt, tls.key")
    add("--certificate-name", default="", metavar="NAME", help="of all tasks' certificates (their hosts)")
    add("--passive", action="append", default=[], metavar="JOB", help="a job that is ended as ps tasks are")


def _declare_program(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--flags", action="store_true", help="append --job_name, --task_index and the hosts to the arguments")
    add("-m", dest="as_module", action="store_true", help="the program is a module's name")
    add("program", nargs="?", default="", help="a Python file; none: the tasks are servers")
    add("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _job(text: str) -> tuple[str, int]:
    try:
        return parse_job_count(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def execute(options: argparse.Namespace) -> int:
    """Does what the action says; returns the exit status, 2 for a cluster that cannot be."""
    act: Callable[[argparse.Namespace], int] = options.act
    if act is not _config:
        folder = options.secrets and os.path.abspath(options.secrets)
        flags.set_cluster_secrets(folder, options.certificate_name)
    try:
        if act is not _config:
            cluster_security()  # says what is wrong with it before anything starts
        return act(options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, OSError, errors.OpError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _BROKEN_PIPE
        print(f"flowstone cluster: {getattr(error, 'message', error)}", file=sys.stderr)
        return 2


def _description(options: argparse.Namespace) -> ClusterDescription:
    jobs = {
        "ps": options.ps,
        "chief": int(options.chief),
        "master": int(options.master),
        "worker": options.workers,
        **dict(options.job),
        "evaluator": int(options.evaluator),
    }
    return ClusterDescription(
        {job: count for job, count in jobs.items() if count},
        _program(options),
        restarts=getattr(options, "restarts", 0),
        threads=getattr(options, "threads", None),
        passive_jobs=PASSIVE_JOBS | set(options.passive),
    )


def _program(options: argparse.Namespace) -> Program:
    path, as_module = options.program, options.as_module
    if path and not as_module and not os.path.exists(path) and options.act is _up and not options.ship:
        raise FileNotFoundError(f"no such file: {path}")
    return Program(path, tuple(options.arguments), as_module, options.flags)


def _up(options: argparse.Namespace) -> int:
    description = _description(options)
    folder = Path(options.logs or tempfile.mkdtemp(prefix="flowstone-cluster-"))
    output = TaskOutput(description.tasks, folder)
    try:
        outcome = _on_ray(description, output, options) if options.ray else None
        if outcome is None:
            outcome = run_locally(description, output, options.grace_seconds)
        print(f"{outcome.table()}\nlogs in {folder}", file=sys.stderr)
        return outcome.exit_status
    finally:
        output.close()


def _on_ray(
    description: ClusterDescription, output: TaskOutput, options: argparse.Namespace
) -> ClusterOutcome:
    try:
        ray_cluster = import_module("flowstone.distributed.launchers.ray_cluster")
    except ImportError as error:
        raise ValueError(f"{error}; pip install 'flowstone[ray]'") from None
    settings = ray_cluster.RaySettings(
        address=options.ray_address,
        folder=options.ship,
        cpus=options.cpus,
        gpus=options.gpus,
        grace_s=options.grace_seconds,
    )
    outcome: ClusterOutcome = ray_cluster.run_on_ray(description, output, settings)
    return outcome


def _config(options: argparse.Namespace) -> int:
    if options.cluster:
        if options.kubernetes:
            raise ValueError(
                "Kubernetes gives the tasks their addresses: say how many there are, not --cluster"
            )
        cluster = parse_cluster(options.cluster)
        tasks = [Task(job, index) for job, hosts in cluster.items() for index in range(len(hosts))]
        if options.evaluator:
            tasks.append(Task("evaluator", 0))
        print("\n".join(tf_config_lines(_program(options), tasks, cluster, options.secrets)))
        return 0
    description = _description(options)
    if options.kubernetes:
        more = options.port, options.gpus, options.secret
        print(kubernetes.manifest(description, options.name, options.image, *more), end="")
        return 0
    addresses = {task: f"localhost:{options.port + place}" for place, task in enumerate(description.tasks)}
    cluster = description.addresses_by_job(addresses)
    print("\n".join(tf_config_lines(description.program, description.tasks, cluster, options.secrets)))
    return 0


def _task(options: argparse.Namespace) -> int:
    """Becomes the task's program; does not return."""
    given = flags.environment()
    program = _program(options)
    if options.slurm:
        cluster, task = slurm.from_slurm(_description(options), given)
    else:
        text = flags.task_configuration()
        if not text:
            raise ValueError("TF_CONFIG is not set: it says which task of which cluster this is (or --slurm)")
        cluster, task = parse_tf_config(text)
    command = task_command(program, task, cluster)
    variables = given | task_variables(cluster, task, None, given)
    sys.stdout.flush()
    os.execvpe(command[0], command, variables)
