"""Collectives: every one that reaches c10d, from Python or from C++ (DDP's reducer)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.distributed as dist

from .names import NameBook
from .patches import PatchBook
from .session import Session, graph_task_id

# c10d's operators, by the names of torch.distributed.
OPERATORS = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "reduce_": "reduce",
    "broadcast_": "broadcast",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "allgather_coalesced_": "all_gather_coalesced",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "gather_": "gather",
    "scatter_": "scatter",
    "barrier": "barrier",
    "monitored_barrier_": "monitored_barrier",
    "send": "send",
    "recv_": "recv",
    "recv_any_source_": "recv",
}
# Methods of ProcessGroup that give Python a Work.
METHODS = (
    "allreduce",
    "allreduce_coalesced",
    "reduce",
    "broadcast",
    "allgather",
    "_allgather_base",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "gather",
    "scatter",
    "barrier",
    "send",
    "recv",
    "recv_anysource",
)


class Ticket:
    """A collective that was issued."""

    __slots__ = ("fields", "is_from_python", "work")

    def __init__(self, fields: dict[str, Any]):
        self.fields = fields
        self.work: Any = None  # a weak reference, or the Work itself where C++ issued it
        self.is_from_python = False


class Collectives:
    """Numbers collectives by group from the start of the process, recorded or not.

    A kernel below autograd sees each c10d operator when it is called; it passes everything on as
    it came. Completion is what ``Work.wait`` says; works that C++ waits for are asked at the next
    event, so theirs is seen a little late.
    """

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names
        self._numbers: dict[str, int] = {}
        self._groups: dict[str, str] = {}  # c10d's group name -> ours
        self._names_taken: dict[str, str] = {}
        self._undeclared: list[dict[str, Any]] = []
        self._open: dict[str, Ticket] = {}  # by key, oldest first
        self._by_work: dict[int, Ticket] = {}
        self._here = threading.local()
        self.on_reducer_call: Callable[[tuple], None] = _nothing

    def install(self, patches: PatchBook) -> None:
        """Registers the kernels and watches waiting. Nothing where torch has no distributed."""
        if not dist.is_available():
            return
        library = torch.library.Library("c10d", "IMPL")
        patches.then(library._destroy)
        for operator, name in OPERATORS.items():
            packet = getattr(torch.ops.c10d, operator, None)
            if packet is not None:
                kernel = self._kernel(packet.default, name)
                library.impl(operator, kernel, "ADInplaceOrView", with_keyset=True)
        self._watch_works(patches)

    def poll(self) -> None:
        """Looks which collectives that nobody has waited for are complete."""
        for ticket in list(self._open.values()):
            work = ticket.work() if isinstance(ticket.work, weakref.ref) else ticket.work
            if work is None:
                if ticket.work is not None:  # dropped without a wait: nothing is known
                    self._open.pop(ticket.fields["key"], None)
                continue
            if not ticket.is_from_python and _is_done(work):
                self._complete(ticket)

    def declare_groups(self) -> None:
        """Writes the records of groups that were met before the recording began."""
        for record in self._undeclared:
            self._session.add(record)
        self._undeclared.clear()

    def _kernel(self, operator, name: str):
        arguments = [argument.name for argument in operator._schema.arguments]
        at_async = arguments.index("async_op") if "async_op" in arguments else None
        below = torch._C._after_ADInplaceOrView_keyset
        reducer = torch.ops.c10d.allreduce_.default

        def kernel(keyset, *args, **kwargs):
            is_async = kwargs.get("async_op", True)
            if at_async is not None and at_async < len(args):
                is_async = args[at_async]
            self.poll()
            if operator is reducer and not getattr(self._here, "depth", 0) and _in_task():
                self.on_reducer_call(args)
            ticket = self._issue(name, args, bool(is_async))
            try:
                with torch._C._AutoDispatchBelowADInplaceOrView():
                    result = operator.redispatch(keyset & below, *args, **kwargs)
            except BaseException as error:
                self._fail(ticket, error)
                raise
            self._note_work(ticket, result)
            return result

        return kernel

    def _issue(self, name: str, args, is_async: bool) -> Ticket:
        group = self._group(args)
        number = self._numbers.get(group, 0)
        self._numbers[group] = number + 1
        key = f"{group}:{number}"
        fields = {"op": name, "cseq": number, "key": key, "group": group}
        ticket = Ticket(fields)
        if self._session.is_open:
            size = max((_bytes(arg) for arg in args), default=0)
            told = {**fields, "bytes": size, "async": is_async, "params": self._params(args)}
            self._session.emit("coll.issue", told)
            self._open[key] = ticket
        return ticket

    def _params(self, args) -> Optional[list[str]]:
        """The parameters whose gradients or data are sent as they are, not in a bucket."""
        tensors = [tensor for arg in args for tensor in _tensors(arg)]
        return [name for name in map(self._names.param_at, tensors) if name] or None

    def _note_work(self, ticket: Ticket, result) -> None:
        if getattr(self._here, "depth", 0):  # Python will have a Work of its own for it
            ticket.is_from_python = True
            self._here.last = ticket
            return
        script = result[-1] if isinstance(result, tuple) else result
        if isinstance(script, torch.ScriptObject):
            ticket.work = dist.distributed_c10d.Work.unbox(script)

    def _complete(self, ticket: Ticket) -> None:
        if self._open.pop(ticket.fields["key"], None) is not None:
            self._session.emit("coll.complete", ticket.fields)

    def _fail(self, ticket: Ticket, error: BaseException) -> None:
        if self._open.pop(ticket.fields["key"], None) is not None:
            first_line = (str(error).splitlines() or [""])[0]
            fields = {"type": type(error).__name__, "message": first_line[:400]}
            self._session.emit("exc", {**fields, "key": ticket.fields["key"]})

    def _watch_works(self, patches: PatchBook) -> None:
        group_class = dist.distributed_c10d.ProcessGroup
        for method in METHODS:
            if hasattr(group_class, method):
                patches.set(group_class, method, self._method(getattr(group_class, method)))
        work_class = dist.distributed_c10d.Work
        original = work_class.wait

        def wait(work, *args, **kwargs):
            ticket = self._by_work.pop(id(work), None)
            if ticket is None:
                return original(work, *args, **kwargs)
            try:
                result = original(work, *args, **kwargs)
            except BaseException as error:
                self._fail(ticket, error)
                raise
            self._complete(ticket)
            return result

        patches.set(work_class, "wait", wait)

    def _method(self, original):
        here = self._here

        def method(group, *args, **kwargs):
            here.depth = getattr(here, "depth", 0) + 1
            here.last = None
            try:
                work = original(group, *args, **kwargs)
            finally:
                here.depth -= 1
            ticket, here.last = here.last, None
            if ticket is not None and work is not None:
                key = id(work)
                ticket.work = weakref.ref(work, lambda _: self._by_work.pop(key, None))
                self._by_work[key] = ticket
            return work

        return method

    def _group(self, args) -> str:
        script = next(arg for arg in args if isinstance(arg, torch.ScriptObject))
        group = dist.ProcessGroup.unbox(script)
        name = self._groups.get(group.group_name)
        return name if name is not None else self._meet_group(group)

    def _meet_group(self, group) -> str:
        if group is dist.group.WORLD:
            name, ranks = "world", list(range(dist.get_world_size()))
        else:
            ranks = _ranks(group)
            name = f"g{_ranks_word(ranks)}"
            if name in self._names_taken:  # c10d's own name is the same on all ranks
                name = f"{name}@{group.group_name}"
        self._names_taken[name] = self._groups[group.group_name] = name
        self._undeclared.append({"rec": "group", "name": name, "ranks": ranks})
        if self._session.is_open:
            self.declare_groups()
        return name


def _is_done(work) -> bool:
    """DDP waits for the future, which is done a moment before its work says so."""
    if work.is_completed():
        return True
    try:
        return work.get_future().done()
    except RuntimeError:  # a backend without futures
        return False


def _nothing(_args) -> None:
    pass


def _in_task() -> bool:
    return graph_task_id() != -1


def _ranks(group) -> Optional[list[int]]:
    try:
        return dist.get_process_group_ranks(group)
    except (KeyError, RuntimeError, ValueError):  # a group that c10d has not registered
        return None


def _ranks_word(ranks: Optional[list[int]]) -> str:
    if not ranks:
        return "_unknown"
    if len(ranks) > 8:
        return f"{ranks[0]}_{ranks[-1]}x{len(ranks)}"
    return "_".join(map(str, ranks))


def _tensors(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [item for item in value if isinstance(item, torch.Tensor)] if _is_list(value) else []


def _is_list(value) -> bool:
    return isinstance(value, (list, tuple))


def _bytes(value) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if _is_list(value):
        return sum(_bytes(item) for item in value)
    return 0
