"""What starts the tasks of a cluster (white paper 3.3): one description, several places to run it.

A `ClusterDescription` (`cluster_description`) says which jobs there are, how many tasks each has, and the
program that every task runs. Each task finds its place in the cluster in its environment (``TF_CONFIG``,
`task_environment`) or in its arguments (`program_arguments`), so that no program needs a line for its
launcher.

| file | starts the tasks |
| --- | --- |
| `local_processes` | as processes of this machine, at free ports of the loopback interface |
| `ray_cluster` | as actors of a Ray cluster (`pip install flowstone[ray]`) |
| `slurm` | one by one in what `srun` started: who am I, and where are the others? |
| `kubernetes` | by a manifest for `kubectl apply` |

Who is restarted, and when all is over, decides `supervision`, a state machine without I/O that the first
two drive. A `TaskProcess` is a process with its output; an `OrphanGuard` ends what a killed launcher left.
"""
