"""Where each node may run: requested devices, kernels and colocation (white paper 4.3).

Nodes that must share a device form a *group*, found by union-find. Two nodes must share one if one names the
other in ``_class`` (``loc:@name``), if both name the same node there (it need not be in the subgraph), or if
one passes a variable's buffer, a resource's handle or a dataset to the other. A group may run on the devices
that

- match all its requests (a request is a device's name with any of its parts left out);
- have a kernel for every member (strings live on the host: only CPUs have kernels for them);
- an earlier plan of the session chose, if one did: state does not move.

A node that takes a buffer or handle is placed where that is. Its own request counts only if it takes a
resource's handle and nothing requests a device for the resource. With *soft placement*, a requested device
that does not exist or has no kernel is replaced by the best one of the requested task that has one. Of
requests that contradict each other, soft placement ignores the index, or type and index. The gradient of a
loop asks for a stack on the device of the value that it keeps; this is ignored unless all device types here
have stacks.

    constraints = find_constraints(subgraph.nodes, devices, soft_placement=False)
    constraints.feasible[constraints.group[i]]     # indices into devices, preferred first

Raises InvalidArgumentError "Cannot assign a device for operation …" for a node that no device can run, and
"Cannot colocate nodes …" for a group that none can, with all its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import OpDeclaration
from flowstone.framework.graphs.device_name import DeviceSpec, canonical_name
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.framework.types import dtypes
from flowstone.placement.devices import PlacementDevice, by_priority
from flowstone.rewriting.analyses.state_versions import References, changed_by

_CLASS_PREFIX = "loc:@"
_FIELDS = ("job", "replica", "task", "device_type", "device_index")
_CALLED = {
    "job": "jobs",
    "replica": "replicas",
    "task": "tasks",
    "device_type": "types",
    "device_index": "ids",
}


class Constraints(NamedTuple):
    """`group`: of each node, by its position; `feasible`: of each group, the devices that it may use as
    indices, preferred first.
    """

    group: list[int]
    feasible: list[tuple[int, ...]]

    @property
    def are_choices(self) -> bool:
        """Whether any group has more than one device to choose from."""
        return any(len(devices) > 1 for devices in self.feasible)


def find_constraints(
    nodes: Sequence[PlanNode],
    devices: Sequence[PlacementDevice],
    soft_placement: bool = False,
    assigned: Mapping[str, str] | None = None,
    home: str = "",
) -> Constraints:
    """The groups of `nodes` and the devices that each may use.

    `assigned`: devices' full names by the names of nodes that earlier plans placed. `home`: the task, as
    ``/job:worker/replica:0/task:1``, of groups that may be on several tasks, if it is among these; else they
    go to the first of these. InvalidArgumentError as the module says.
    """
    groups = _Groups(nodes, frozenset(device.device_type for device in devices))
    finder = _Finder(nodes, devices, soft_placement, groups, assigned or {})
    constraints = Constraints(*finder.find())
    if not home:
        return constraints
    tasks = [device.name.rpartition("/device:")[0] for device in devices]
    return constraints._replace(feasible=[_on_one_task(each, tasks, home) for each in constraints.feasible])


def _on_one_task(feasible: tuple[int, ...], tasks: Sequence[str], home: str) -> tuple[int, ...]:
    """Those of the feasible devices that are at home, else on the first task that has any."""
    allowed = {tasks[d] for d in feasible}
    task = home if home in allowed else tasks[min(feasible)]
    return tuple([d for d in feasible if tasks[d] == task])


def runs_everything(nodes: Iterable[PlanNode], device: PlacementDevice) -> bool:
    """Whether `device`, the only one, satisfies every request and has every kernel; asks once for each kind
    of node."""
    spec = DeviceSpec.from_string(device.name)
    kinds = {(node.device, node.declaration) for node in nodes}
    return all(
        (not requested or _matches(DeviceSpec.from_string(requested), spec))
        and (not declaration.kernels or device.device_type in declaration.kernels)
        for requested, declaration in kinds
    )


def _is_held(x: Any) -> bool:
    """Whether a value stays on its device: a resource's handle, or a dataset."""
    return x.dtype is dtypes.resource or x.op.declaration.role == "dataset"


# ---- groups


class _Groups:
    """Union-find over the positions of nodes.

    `parent`: the forest; `joined`: positions in groups of several; `consumers`: position of a node that takes
    another node's state -> its kind, "reference" or "resource"; `free`: positions of stacks that may be on
    any device, because some type here has no stacks.
    """

    def __init__(self, nodes: Sequence[PlanNode], types: frozenset[str]) -> None:
        self.nodes = nodes
        self.free: set[int] = set()
        self.parent = list(range(len(nodes)))
        self.consumers: dict[int, str] = {}
        index = {node: i for i, node in enumerate(nodes)}
        first_of_class: dict[str, int] = {}
        for i, node in enumerate(nodes):
            if node.declaration.container == "stack" and not types.issubset(node.declaration.kernels):
                self.free.add(i)
            for name in node.attributes.get("_class", ()) if i not in self.free else ():
                if isinstance(name, str) and name.startswith(_CLASS_PREFIX):
                    self.join(first_of_class.setdefault(name[len(_CLASS_PREFIX) :], i), i)
            has_references = node.declaration.has_references
            for k, x in enumerate(node.inputs):
                if _is_held(x) or (has_references and node.input_argument(k).is_ref):
                    self.consumers[i] = "resource" if _is_held(x) else "reference"
                    if x.op in index:
                        self.join(index[x.op], i)
        if first_of_class:
            for i, node in enumerate(nodes):
                if node.name in first_of_class:
                    self.join(i, first_of_class[node.name])
        self._join_readers(index, types)

    def _join_readers(self, index: dict[PlanNode, int], types: frozenset[str]) -> None:
        """Puts nodes that take a reference, which another node changes, on its device unless they request
        another. There they see its value at the time they run; on other devices they get a copy of an earlier
        time."""
        references = References()
        changed: set[Any] = set()
        for node in self.nodes:
            changed |= changed_by(node, references)
        if not changed:
            return
        grouped = {i for members in self.of_several().values() for i in members}
        for node in self.nodes:
            if node.device or index[node] in grouped or not types.issubset(node.declaration.kernels):
                continue
            shown = [x for x in node.inputs if x.op in index and not changed.isdisjoint(references[x])]
            if shown:  # the first one's device, if there are several
                self.join(index[shown[0].op], index[node])

    def root(self, i: int) -> int:
        """The representative of the group of position `i`."""
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        """Makes one group of two; the earlier representative stays."""
        a, b = self.root(i), self.root(j)
        if a != b:
            self.parent[max(a, b)] = min(a, b)

    def of_several(self) -> dict[int, list[int]]:
        """representative -> members, for the groups with more than one."""
        found: dict[int, list[int]] = {}
        for i, above in enumerate(self.parent):
            if above != i:
                root = self.root(i)
                found.setdefault(root, [root]).append(i)
        return found


# ---- feasible devices


class _Request:
    """What a group asks for: the merged spec, the member that asked first, and whether a contradiction was
    ignored.
    """

    __slots__ = ("gave_way", "member", "spec")

    def __init__(self, spec: DeviceSpec, member: int) -> None:
        self.spec, self.member, self.gave_way = spec, member, False


class _Finder:
    """One search for feasible devices; results of nodes without a group are remembered by kind of node."""

    def __init__(
        self,
        nodes: Sequence[PlanNode],
        devices: Sequence[PlacementDevice],
        soft_placement: bool,
        groups: _Groups,
        assigned: Mapping[str, str],
    ) -> None:
        self.nodes, self.devices, self.soft, self.groups = nodes, devices, soft_placement, groups
        self.order = by_priority(devices)
        self.specs = [DeviceSpec.from_string(device.name) for device in devices]
        self.position = {canonical_name(device.name): i for i, device in enumerate(devices)}
        self.assigned = assigned
        self.types = frozenset(device.device_type for device in devices)
        self.only_cpus = self.types == {CPU}
        self.singles: dict[tuple[OpDeclaration, bool, str], tuple[int, ...]] = {}
        self.by_task: dict[tuple[str | None, int | None], list[int]] = {}  # made when first needed

    def find(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """The fields of `Constraints`."""
        several = self.groups.of_several()
        group = [-1] * len(self.nodes)
        feasible: list[tuple[int, ...]] = []
        for i, node in enumerate(self.nodes):
            if group[i] >= 0:
                continue
            members = several.get(i)
            if members is None:
                group[i] = len(feasible)
                feasible.append(self._single(i, node))
            else:
                for member in members:
                    group[member] = len(feasible)
                feasible.append(self._group(members))
        return group, feasible

    def _single(self, i: int, node: PlanNode) -> tuple[int, ...]:
        if self.assigned and node.name in self.assigned:
            return self._group([i])
        key = (node.declaration, not self.only_cpus and _has_strings(node), node.device)
        found = self.singles.get(key)
        if found is None:
            found = self.singles[key] = self._group([i])
        return found

    def _group(self, members: list[int]) -> tuple[int, ...]:
        placed = self._assigned(members)
        if placed is not None:
            return (placed,)
        request = self._request(members)
        able = self.types
        for member in members:
            able = able & self._types(self.nodes[member])
        if not able:
            self._refuse_types(members)
        if request is None:
            return tuple([d for d in self.order if self.devices[d].device_type in able])
        asked = [d for d in self._of_task(request.spec) if _matches(request.spec, self.specs[d])]
        found = [d for d in asked if self.devices[d].device_type in able]
        if found:
            return (found[0],) if request.gave_way else tuple(found)
        if self.soft:
            wider = request.spec.replace(device_type=None, device_index=None)
            for d in self._of_task(wider):
                if _matches(wider, self.specs[d]) and self.devices[d].device_type in able:
                    return (d,)
        self._refuse(members, request, bool(asked))

    def _of_task(self, spec: DeviceSpec) -> list[int]:
        """The devices of the task that is asked for, all without one; preferred first."""
        if spec.job is None or spec.task is None:
            return self.order
        if not self.by_task:
            for d in self.order:
                self.by_task.setdefault((self.specs[d].job, self.specs[d].task), []).append(d)
        return self.by_task.get((spec.job, spec.task), [])

    def _types(self, node: PlanNode) -> frozenset[str]:
        """The types of the devices here that have a kernel for `node`."""
        kernels = node.declaration.kernels
        if not kernels:  # a feed: the session can bring it to any device
            able = self.types
        else:
            able = self.types.intersection(kernels)
        return able if self.only_cpus or not _has_strings(node) else able & {CPU}

    def _assigned(self, members: list[int]) -> int | None:
        """The device on which an earlier plan placed a member, if that device still exists."""
        found: dict[int, int] = {}
        for member in members:
            name = self.assigned.get(self.nodes[member].name)
            if name is not None and (device := self.position.get(canonical_name(name))) is not None:
                found.setdefault(device, member)
        if len(found) > 1:
            (_, a), (_, b) = list(found.items())[:2]
            self._refuse_merging(members, a, b, "their state is on different devices")
        return next(iter(found), None)

    # ---- requests

    def _request(self, members: list[int]) -> _Request | None:
        """The merged request of the members; None if none has a request."""
        consumers = self.groups.consumers
        request: _Request | None = None
        if self.groups.free and not self.groups.free.isdisjoint(members):
            return None
        for member in members:
            device = self.nodes[member].device
            if device and (len(members) == 1 or member not in consumers):
                request = self._merged(members, request, member, DeviceSpec.from_string(device))
        for member in members if request is None else ():
            device = self.nodes[member].device
            if device and consumers[member] == "resource":
                spec = DeviceSpec.from_string(device)
                if request is None or not _conflict(request.spec, spec):
                    request = self._merged(members, request, member, spec)
        return request

    def _merged(
        self, members: list[int], request: _Request | None, member: int, spec: DeviceSpec
    ) -> _Request:
        if request is None:
            return _Request(spec, member)
        conflict = _conflict(request.spec, spec)
        if conflict in ("device_type", "device_index") and self.soft:
            given_up = {"device_index": None} if conflict == "device_index" else _NO_TYPE
            merged = _Request(request.spec.make_merged_spec(spec).replace(**given_up), request.member)
            merged.gave_way = True
            return merged
        if conflict:
            names = [repr(self.nodes[i].device) for i in (member, request.member)]
            self._refuse_merging(
                members,
                member,
                request.member,
                f"Cannot merge devices with incompatible {_CALLED[conflict]}: {names[0]} and {names[1]}",
            )
        merged = _Request(request.spec.make_merged_spec(spec), request.member)
        merged.gave_way = request.gave_way
        return merged

    # ---- refusals

    def _refuse(self, members: list[int], request: _Request, exists: bool) -> NoReturn:
        node, spec = self.nodes[request.member], request.spec.to_string()
        begin = f"Cannot assign a device for operation {node.name}: "
        if not exists:
            names = ", ".join(device.name for device in self.devices)
            _raise(
                node,
                f"{begin}Operation was explicitly assigned to {spec} but available devices are [ {names} ]. "
                "Make sure the device specification refers to a valid device.",
            )
        _raise(
            node,
            f"{begin}Could not satisfy explicit device specification '{spec}' because no "
            f"supported kernel for {request.spec.device_type or 'these'} devices is available.\n"
            + self._listing(members),
        )

    def _refuse_types(self, members: list[int]) -> NoReturn:
        """Raises because no device type has kernels for all members; names two members without a common
        type."""
        able = self.types
        earlier = members[0]
        for member in members:
            own = self._types(self.nodes[member])
            if not own:
                node = self.nodes[member]
                here = ", ".join(sorted(self.types))
                _raise(
                    node,
                    f"Cannot assign a device for operation {node.name}: No kernel of op '{node.type}' "
                    f"supports any of the devices here: {here}.\n{self._listing(members)}",
                )
            if not able & own:
                break
            if able & own != able:
                earlier = member
            able = able & own
        self._refuse_merging(
            members,
            member,
            earlier,
            "no device type supports both of those nodes and the other nodes colocated with them.",
            " because ",
        )

    def _refuse_merging(self, members: list[int], a: int, b: int, reason: str, joint: str = ": ") -> NoReturn:
        names = f"'{self.nodes[a].name}' and '{self.nodes[b].name}'"
        _raise(self.nodes[a], f"Cannot colocate nodes {names}{joint}{reason}\n{self._listing(members)}")

    def _listing(self, members: list[int]) -> str:
        """Describes the whole group: the kernels of its ops, and its members with their requests."""
        kinds = {
            self.nodes[i].type: " ".join(
                sorted({self.devices[d].device_type for d in self.order} & self._types(self.nodes[i]))
            )
            for i in members
        }
        lines = ["Colocation Debug Info:", "Colocation group had the following types and supported devices: "]
        lines += [f"{kind}: {types or 'none'} " for kind, types in kinds.items()]
        lines += ["", "Colocation members, user-requested devices, and framework assigned devices, if any:"]
        for i in members:
            node = self.nodes[i]
            placed = self.assigned.get(node.name)
            words = [f"  {node.name} ({node.type})", node.device, placed and f"framework assigned={placed}"]
            lines.append(" ".join(word for word in words if word))
        return "\n".join(lines)


_NO_TYPE: dict[str, Any] = {"device_type": None, "device_index": None}


def _raise(node: PlanNode, message: str) -> NoReturn:
    origin = node.origin
    raise errors.InvalidArgumentError(lambda: origin.node_def, origin, message)


def _has_strings(node: PlanNode) -> bool:
    string = dtypes.string
    return any(x.dtype.base_dtype is string for x in (*node.outputs, *node.inputs))


def _matches(want: DeviceSpec, have: DeviceSpec) -> bool:
    """Whether a full device name has all the parts that a request gives."""
    return all(getattr(want, f) in (None, getattr(have, f)) for f in _FIELDS)


def _conflict(a: DeviceSpec, b: DeviceSpec) -> str:
    """The first field that two requests contradict each other in; "" if none."""
    for field in _FIELDS:
        x, y = getattr(a, field), getattr(b, field)
        if x is not None and y is not None and x != y:
            return field
    return ""
