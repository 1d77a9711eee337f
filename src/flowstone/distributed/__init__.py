"""One graph on many machines (white paper 3.2.2, 3.3, 7): what speaks between the tasks of a cluster.

A client's graph and its steps go to a *master*, in any task of the cluster (`master`). It prunes and places
the graph over all tasks' devices and divides it into a part for each task (`part_graphs`), which go to the
tasks' *workers* as GraphDefs (`worker`). A worker plans and compiles its part as a session does its graph,
and keeps the state: variables, queues, tables. A step is one request to each worker; all else is Send and
Receive between the workers, at each step's `step_rendezvous`.

The messages are TensorFlow's (`tensorflow.MasterService`, `tensorflow.WorkerService`), so TensorFlow's
clients can use our servers. Decisions are state machines without I/O: `master_step` (what a step needs of
whom), `worker_steps` (which steps a worker knows). `transport` alone imports gRPC; `server` puts all
together.
"""
