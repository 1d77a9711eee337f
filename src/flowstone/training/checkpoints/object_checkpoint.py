"""`tf.train.Checkpoint`: variables saved by the objects that hold them, in TensorFlow's format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from flowstone.framework import errors
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph, get_default_session
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.io.file_system import as_path
from flowstone.ops.arrays.constants import placeholder
from flowstone.ops.variables.variables import Variable
from flowstone.training.checkpoints.checkpoint_reading import NewCheckpointReader
from flowstone.training.checkpoints.checkpoint_state import update_checkpoint_state
from flowstone.training.checkpoints.object_graph import GRAPH_KEY, ObjectGraph, Root, is_trackable
from flowstone.training.checkpoints.python_state import STATE, PythonState, StoredTensor

__all__ = ["Checkpoint"]


further_sessions: list[Callable[[], Any]] = []  # where no session is the default one: that of Keras


def session_or_default(session: Any) -> Any:
    """The session, or the default one, or a further one. ValueError if there is none."""
    session = session or get_default_session()
    if session is None and further_sessions:
        return further_sessions[0]()
    if session is None:
        raise ValueError(
            "Either session argument should be provided or default session should be established"
        )
    return session


class Checkpoint(Root):
    """Saves and restores the variables that objects hold: each is named by the attributes that lead to it.

        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("/tmp/run/ckpt", session)
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)

    Args:
        **kwargs: variables, modules, layers, optimisers (with their slots), other Checkpoints, and lists,
            tuples and dicts of them; they become attributes.

    Raises ValueError for other objects.
    """

    def __init__(self, **kwargs: Any) -> None:
        for name in sorted(kwargs):
            if not is_trackable(kwargs[name]):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (one that holds variables), "
                    f"got {kwargs[name]!r}."
                )
            setattr(self, name, kwargs[name])
        self._writers: dict[Any, tuple[Any, Any, list[Any]]] = {}

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        """What a checkpoint has of it: its attributes, and its counter behind them."""
        own = ("_save_counter", "_count", "_writers")
        found = [(name, value) for name, value in vars(self).items() if name not in own]
        return [*found, ("save_counter", self._save_counter)] if "_save_counter" in vars(self) else found

    @property
    def save_counter(self) -> Any:
        """How often it was saved: an int64 variable, made when first asked for; 0 at first."""
        self._make_counter()
        return self._save_counter

    def _make_counter(self) -> None:
        if "_save_counter" not in vars(self):
            with get_default_graph().control_dependencies(None):
                counter = Variable(np.int64(0), trainable=False, name="save_counter", dtype=dtypes.int64)
            self._save_counter = counter
            self._count = counter.assign_add(np.int64(1))

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Writes the variables' values in `session` (None: the default one), and returns the prefix.

        Nothing is counted, and no state file is written.
        """
        session, path = session_or_default(session), as_path(file_prefix)
        if "_save_counter" in vars(self):
            self._start_counter(session)
        objects = ObjectGraph(_Saved(self))
        with session.graph.as_default():
            operation, prefix, states = self._writer(objects)
        found = [each.serialize() for each in objects.states.values()]
        session.run(operation, {prefix: path, **dict(zip(states, found))})
        return path

    def _writer(self, objects: ObjectGraph) -> tuple[Any, Any, list[Any]]:
        """The operation that saves these objects, and the prefix and the states to feed."""
        saved = {**objects.variables, **objects.states, **objects.tensors}
        key = tuple((name, id(each)) for name, each in saved.items())
        if key not in self._writers:
            names = [*saved, GRAPH_KEY]
            with get_default_graph().control_dependencies(None), get_default_graph().device("/cpu:0"):
                prefix = placeholder(dtypes.string, [], name="save_prefix")
                states = [placeholder(dtypes.string, [], name="state") for _ in objects.states]
                others = [each.saved_tensor() for each in objects.tensors.values()]
                tensors = [*objects.variables.values(), *states, *others]
                values = _values([*tensors, objects.message().SerializeToString()])
                operation = F.SaveV2.operation(prefix, names, [""] * len(names), values)
            self._writers[key] = (operation, prefix, states)
        return self._writers[key]

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """`write` to ``file_prefix-N``, N being how often it was saved; then the state file."""
        session = session_or_default(session)
        self._make_counter()
        count = self._counted(session)
        path = self.write(f"{as_path(file_prefix)}-{count}", session)
        folder = path.rpartition("/")[0] or "."
        update_checkpoint_state(folder, path, [path], save_relative_paths=True)
        return path

    def _counted(self, session: Any) -> int:
        self._start_counter(session)
        return int(session.run(self._count))

    def _start_counter(self, session: Any) -> None:
        """Initialises the counter where the session has not."""
        counter = self.save_counter
        try:
            session.run(counter)
        except errors.FailedPreconditionError:
            session.run(counter.initializer)

    def restore(self, save_path: Any) -> Any:
        """What will give the variables the values of a checkpoint; only states of Python objects change now.

        Checkpoints of `tf.train.Saver` are matched by the variables' names. `save_path`: a prefix; None
        restores nothing, so that `initialize_or_restore` initialises.

        Returns an object with `run_restore_ops(session)`, `initialize_or_restore(session)`, and
        `assert_consumed`, `assert_existing_objects_matched`, `assert_nontrivial_match`, `expect_partial`,
        which return it. NotFoundError if there is no such checkpoint.
        """
        self._make_counter()
        if save_path is None:
            return NothingRestored(self)
        return Restored(self, NewCheckpointReader(save_path), as_path(save_path))


class _Saved(Root):
    """The root as it is saved."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        vars(self).update(checkpoint._checkpoint_children())


def _values(tensors: list[Any]) -> list[Any]:
    return [each.value() if isinstance(each, Variable) else convert_to_tensor(each) for each in tensors]


class Restored:
    """A checkpoint that will be, or was, restored; see `Checkpoint.restore`.

    Each method looks at what the objects hold by then: a model may have got its weights, and an optimiser its
    slots, since the checkpoint was restored.
    """

    _objects: ObjectGraph
    _keys: dict[str, Any]

    def __init__(self, checkpoint: Checkpoint, reader: Any, path: str) -> None:
        self._checkpoint, self._reader, self._path = checkpoint, reader, path
        self._message = messages("trackable_object_graph_pb2").TrackableObjectGraph()
        self._matched: dict[int, int] = {}
        self._by_name = not reader.has_tensor(GRAPH_KEY)
        if not self._by_name:
            self._message.ParseFromString(reader.get_tensor(GRAPH_KEY))
        self._taken: set[str] = set()  # keys of other values
        self._takers: dict[int, Any] = {}  # the objects that were asked to take them, by identity
        self._operations: list[Any] = []  # that take other tensors
        self._match()

    def _match(self) -> None:
        self._objects = ObjectGraph(_Saved(self._checkpoint))
        if not self._by_name:
            self._matched = self._objects.matched(self._message)
            if self._objects.look_up(self._message, self._matched):
                self._objects = ObjectGraph(_Saved(self._checkpoint))
                self._matched = self._objects.matched(self._message)
        self._keys = self._found_keys()
        for number, node in self._matched.items():
            each = self._objects.objects[number]
            if id(each) not in self._takers:
                self._takers[id(each)] = each
                self._take(each, node)

    def _take(self, each: Any, node: int) -> None:
        """Gives states of Python objects their values, and asks what takes other tensors."""
        if isinstance(each, PythonState):
            for key in self._state_keys(node):
                each.deserialize(self._reader.get_tensor(key))
        elif isinstance(each, StoredTensor):
            for attribute in self._message.nodes[node].attributes:
                self._taken.add(attribute.checkpoint_key)
                tensor = F.RestoreV2(self._path, [attribute.checkpoint_key], [""], dtypes=[each.dtype])[0]
                operation = each.restored(tensor)
                self._operations += [] if operation is None else [operation]
        elif hasattr(each, "_take_state"):  # what it has of these is decided by the checkpoint
            for child in self._message.nodes[node].children:
                for key in self._state_keys(child.node_id):
                    each._take_state(child.local_name, self._reader.get_tensor(key))

    def _state_keys(self, node: int) -> list[str]:
        attributes = self._message.nodes[node].attributes
        keys = [each.checkpoint_key for each in attributes if each.name == STATE]
        self._taken.update(keys)
        return keys

    def _found_keys(self) -> dict[str, Any]:
        """The variables that the checkpoint has, by its own keys."""
        found = {}
        for number, each in enumerate(self._objects.objects):
            if not isinstance(each, Variable):
                continue
            if self._by_name:
                if self._reader.has_tensor(each.op.name):
                    found[each.op.name] = each
            elif number in self._matched:
                for attribute in self._message.nodes[self._matched[number]].attributes:
                    found[attribute.checkpoint_key] = each
        return found

    def _unmatched(self) -> list[str]:
        known = {id(each) for each in self._keys.values()}
        counter = vars(self._objects.objects[0])["save_counter"]
        variables = self._objects.variables.items()
        missing = [key for key, each in variables if id(each) not in known and each is not counter]
        found = {id(self._objects.objects[number]) for number in self._matched}
        others = {**self._objects.states, **self._objects.tensors}.items()
        return missing + [key for key, each in others if id(each) not in found]

    def assert_existing_objects_matched(self) -> Restored:
        """AssertionError if the checkpoint lacks the value of a variable that exists."""
        self._match()
        missing = self._unmatched()
        if missing:
            raise AssertionError(
                "Some Python objects were not bound to checkpointed values, likely due to changes in the "
                f"Python program: {missing}"
            )
        return self

    def assert_consumed(self) -> Restored:
        """AssertionError if the checkpoint lacks the value of a variable, or has values that none takes."""
        self.assert_existing_objects_matched()
        names = self._reader.get_variable_to_shape_map()
        known = {*self._keys, *self._taken, GRAPH_KEY}
        left = sorted(name for name in names if name not in known)
        left = [name for name in left if not name.startswith("save_counter/")]
        if left:
            raise AssertionError(f"Unresolved object in checkpoint: {left}")
        return self

    def assert_nontrivial_match(self) -> Restored:
        """AssertionError if no variable takes a value of the checkpoint."""
        self._match()
        counter = vars(self._objects.objects[0])["save_counter"]
        if all(each is counter for each in self._keys.values()):
            raise AssertionError("Nothing in the checkpoint matches the objects that exist.")
        return self

    def expect_partial(self) -> Restored:
        """Says that not all need match; nothing warns of it anyway."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables that were matched their values in `session` (None: the default one)."""
        session = session_or_default(session)
        self._match()
        self.load_variables(self._keys, session)
        session.run(self._operations)

    @property
    def matched_keys(self) -> frozenset[str]:
        """The checkpoint's keys of the variables that were matched."""
        return frozenset(self._keys)

    def load_variables(self, keys: Iterable[str], session: Any) -> None:
        """Gives the variables of these keys, which were matched, their values in `session`."""
        for key in keys:
            self._keys[key].load(self._reader.get_tensor(key), session)

    def initialize_or_restore(self, session: Any = None) -> None:
        """`run_restore_ops`; first the variables that were not matched are initialised."""
        session = session_or_default(session)
        self._match()
        known = {id(each) for each in self._keys.values()}
        rest = [each for each in self._objects.variables.values() if id(each) not in known]
        session.run([each.initializer for each in rest])
        self.run_restore_ops(session)


class NothingRestored:
    """In place of `Restored` where there is no checkpoint: variables are initialised."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def _refuse(self) -> NoReturn:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    def assert_existing_objects_matched(self) -> NoReturn:
        """AssertionError: there is no checkpoint."""
        self._refuse()

    def assert_consumed(self) -> NoReturn:
        """AssertionError: there is no checkpoint."""
        self._refuse()

    def assert_nontrivial_match(self) -> NoReturn:
        """AssertionError: there is no checkpoint."""
        self._refuse()

    def run_restore_ops(self, session: Any = None) -> NoReturn:
        """AssertionError: there is no checkpoint."""
        self._refuse()

    def expect_partial(self) -> NothingRestored:
        """Does nothing."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Initialises the variables in `session` (None: the default one)."""
        variables = ObjectGraph(_Saved(self._checkpoint)).variables.values()
        session_or_default(session).run([each.initializer for each in variables])
