"""The objects below a checkpoint's root, their names, and the keys of their variables.

An object's name is the attribute or key that holds it, its path the names from the root. A variable's key in
a checkpoint is its path; that of an optimiser's slot is below the path of the variable that it belongs to.
An object of a class above this room says itself what it holds: its method `_checkpoint_children` gives pairs
of a name and an object; one with `get_slot_names` is an optimiser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flowstone.framework.types.tensor_proto import messages
from flowstone.layers.base import Layer
from flowstone.ops.variables.modules import Module
from flowstone.ops.variables.variables import Variable
from flowstone.training.checkpoints.python_state import STATE, PythonState, StoredTensor
from flowstone.training.optimizers.optimizer import Optimizer

__all__ = ["GRAPH_KEY", "VALUE", "ObjectGraph", "attribute_of", "is_trackable"]

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE = "VARIABLE_VALUE"


class Root:
    """An object whose attributes are checkpointed."""

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """The object, which becomes the attribute `name`; another of that name stays unless `overwrite`."""
        if overwrite or name not in vars(self):
            vars(self)[name] = trackable
        return trackable

    def _lookup_dependency(self, name: str) -> Any:
        """What a checkpoint has of this name, or None. A subclass may make what it has not got yet."""
        value = vars(self).get(name)
        return value if is_trackable(value) else None

    @property
    def _unconditional_checkpoint_dependencies(self) -> list[Any]:
        """Pairs of a name and an object, of the attributes that are checkpointed; a list of its own."""
        return [pair for pair in vars(self).items() if is_trackable(pair[1])]

    @property
    def _unconditional_dependency_names(self) -> dict[str, Any]:
        """The attributes that are checkpointed; a dict of its own."""
        return dict(self._unconditional_checkpoint_dependencies)


def is_trackable(value: Any) -> bool:
    """Whether a value is, or holds, what a checkpoint can have."""
    known = isinstance(value, (Variable, Optimizer, Module, Layer, Root, list, tuple, Mapping))
    return known or attribute_of(value) is not None or hasattr(value, "_checkpoint_children")


def attribute_of(value: Any) -> str | None:
    """The name of what a checkpoint has of the object itself; None if it has only what the object holds."""
    if isinstance(value, (Variable, StoredTensor)):
        return VALUE
    return STATE if isinstance(value, PythonState) else None


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, object) of what an object holds."""
    if attribute_of(value) is not None:
        return
    if hasattr(value, "_checkpoint_children"):
        pairs: Any = value._checkpoint_children()
    elif isinstance(value, Mapping):
        pairs = ((str(key), value[key]) for key in sorted(value, key=str))
    elif isinstance(value, (list, tuple)):
        pairs = ((str(i), item) for i, item in enumerate(value))
    elif isinstance(value, Optimizer):
        pairs = ((name, variable) for (name, _), variable in value._non_slot_dict.items())
    elif isinstance(value, Layer):  # its own lists of variables repeat the attributes
        pairs = ((key, item) for key, item in vars(value).items() if not key.startswith("_"))
    else:
        pairs = vars(value).items()
    yield from ((name, item) for name, item in pairs if is_trackable(item))


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _has_slots(value: Any) -> bool:
    """Whether it is an optimiser with slots of its own, not one that wraps another optimiser of the graph."""
    return hasattr(value, "get_slot_names") and not getattr(value, "_slots_are_of_another", False)


def _slot(optimizer: Any, variable: Any, name: str) -> Any:
    """The optimiser's variable of that name for `variable`; None if there is none."""
    try:
        return optimizer.get_slot(variable, name)
    except KeyError:
        return None


class ObjectGraph:
    """The objects below `root`, numbered breadth-first.

    `variables`, `states` and `tensors` have what is saved, by its keys.
    """

    def __init__(self, root: Any) -> None:
        self.objects: list[Any] = [root]
        self.paths = [""]
        self.edges: list[list[tuple[str, int]]] = []
        self.slots: list[tuple[int, int, str, int]] = []  # optimiser, variable, name, slot variable
        self._numbers = {id(root): 0}
        at = 0
        while at < len(self.objects):
            self.edges.append([self._edge(at, name, item) for name, item in _children(self.objects[at])])
            at += 1
        self._add_slots()
        self.variables: dict[str, Any] = self._by_key(Variable)
        self.states: dict[str, PythonState] = self._by_key(PythonState)
        self.tensors: dict[str, StoredTensor] = self._by_key(StoredTensor)

    def _by_key(self, kind: type) -> dict[str, Any]:
        return {self.key(i): each for i, each in enumerate(self.objects) if isinstance(each, kind)}

    def _edge(self, holder: int, name: str, item: Any) -> tuple[str, int]:
        number = self._numbers.get(id(item))
        if number is None:
            path = self.paths[holder]
            number = self._add(item, f"{path}/{_escaped(name)}" if path else _escaped(name))
        return name, number

    def _add(self, item: Any, path: str) -> int:
        self._numbers[id(item)] = len(self.objects)
        self.objects.append(item)
        self.paths.append(path)
        return len(self.objects) - 1

    def _add_slots(self) -> None:
        optimizers = [(i, each) for i, each in enumerate(self.objects) if _has_slots(each)]
        variables = [(i, each) for i, each in enumerate(self.objects) if isinstance(each, Variable)]
        for number, optimizer in optimizers:
            for name in optimizer.get_slot_names():
                for of, variable in variables:
                    slot = _slot(optimizer, variable, name)
                    if slot is not None:
                        path = f"{self.paths[of]}/.OPTIMIZER_SLOT/{self.paths[number]}/{_escaped(name)}"
                        self.slots.append((number, of, name, self._add(slot, path)))
                        self.edges.append([])

    def key(self, number: int) -> str:
        """The key of the variable, state or tensor with this number."""
        return f"{self.paths[number]}/.ATTRIBUTES/{attribute_of(self.objects[number])}"

    def message(self) -> Any:
        """The TrackableObjectGraph."""
        message = messages("trackable_object_graph_pb2").TrackableObjectGraph()
        for number, (each, edges) in enumerate(zip(self.objects, self.edges, strict=True)):
            node = message.nodes.add()
            node.has_checkpoint_values.value = True
            for name, child in edges:
                node.children.add(node_id=child, local_name=name)
            attribute = attribute_of(each)
            if attribute is not None:
                name = each.op.name if isinstance(each, Variable) else ""
                node.attributes.add(name=attribute, full_name=name, checkpoint_key=self.key(number))
        for optimizer, of, name, slot in self.slots:
            message.nodes[optimizer].slot_variables.add(
                original_variable_node_id=of, slot_name=name, slot_variable_node_id=slot
            )
        return message

    def matched(self, message: Any) -> dict[int, int]:
        """The message's numbers of the objects that this graph has at the same place, by own number."""
        found = {0: 0}
        waiting = [0]
        while waiting:
            own = waiting.pop(0)
            children = {child.local_name: child.node_id for child in message.nodes[found[own]].children}
            for name, number in self.edges[own]:
                if name in children and number not in found:
                    found[number] = children[name]
                    waiting.append(number)
        self._match_slots(message, found)
        return found

    def look_up(self, message: Any, matched: dict[int, int]) -> bool:
        """Asks objects of classes that look up what they hold for all that the message has of them.

        `matched` is that of the message. Whether any was asked: it may hold more by then.
        """
        asked = False
        for number, node in matched.items():
            look_up = getattr(type(self.objects[number]), "_lookup_dependency", Root._lookup_dependency)
            if look_up is Root._lookup_dependency:
                continue
            known = {name for name, _ in self.edges[number]}
            for child in message.nodes[node].children:
                if child.local_name not in known:
                    look_up(self.objects[number], child.local_name)
                    asked = True
        return asked

    def _match_slots(self, message: Any, found: dict[int, int]) -> None:
        for optimizer, of, name, slot in self.slots:
            if optimizer in found and of in found:
                for each in message.nodes[found[optimizer]].slot_variables:
                    if each.original_variable_node_id == found[of] and each.slot_name == name:
                        found[slot] = each.slot_variable_node_id
