"""Collectives: every one that reaches c10d, from Python or from C++ (DDP's reducer)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.distributed as dist

from . import c10d
from .calls import Call
from .groups import Groups
from .names import NameBook
from .patches import PatchBook
from .session import Session, graph_task_id

_LOST = ("coll.issue", "coll.complete", "bucket.ready")
# Every call passes this key on its way to a backend, in inference mode too. It lies below autograd,
# and a kernel there excludes no key from what runs inside.
_KEY = "BackendSelect"


class Ticket:
    """A collective that was issued."""

    __slots__ = ("fields", "is_from_python", "work")

    def __init__(self, fields: dict[str, Any]):
        self.fields = fields
        self.work: Any = None  # a weak reference, or the Work itself where C++ issued it
        self.is_from_python = False


class Collectives:
    """Numbers collectives by group from the start of the process, recorded or not.

    A kernel sees each c10d operator when it is called, and passes everything on as it came.
    Completion is what ``Work.wait`` says; works that C++ waits for are asked at the next event, so
    theirs is seen a little late.
    """

    def __init__(self, session: Session, names: NameBook, on_reducer_call: Callable[[Any], None]):
        self._session = session
        self._names = names
        self._on_reducer_call = on_reducer_call
        self._groups = Groups(session)
        self._numbers: dict[str, int] = {}  # by the beginning of keys
        self._open: dict[str, Ticket] = {}  # by key, oldest first
        self._by_work: dict[int, Ticket] = {}
        self._here = threading.local()
        self._observer = session.guard.observer("collectives", _LOST)
        self._works = session.guard.observer("collectives.works", ("coll.complete",))
        self.poll = self._works.guarded(self._poll)
        self.declare_groups = self._observer.guarded(self._groups.declare)

    def install(self, patches: PatchBook) -> None:
        """Registers the kernels and watches waiting. No-op where torch has no distributed."""
        if not dist.is_available():
            return
        library = torch.library.Library("c10d", "IMPL")
        patches.then(library._destroy)
        for operator in c10d.operators():
            library.impl(operator.key, self._kernel(operator), _KEY, with_keyset=True)
        self._watch_works(patches)
        self._works.guarded(self._watch_functional)(patches)

    def group_name(self, group: Any) -> Optional[str]:
        """Our name of a process group, which is declared if it is new."""
        return self._groups.name(group)

    # ---- kernels -----------------------------------------------------------------------------

    def _kernel(self, operator: c10d.Operator) -> Callable[..., Any]:
        overload, below = operator.overload, _keys_below()
        begin = self._observer.guarded(self._begin)
        fail, end = self._works.guarded(self._fail), self._works.guarded(self._note_work)

        def kernel(keyset, *args, **kwargs):
            ticket = begin(operator, args, kwargs)
            try:
                result = overload.redispatch(keyset & below, *args, **kwargs)
            except BaseException as error:
                fail(ticket, error)
                raise
            end(ticket, result)
            return result

        return kernel

    def _begin(self, operator: c10d.Operator, args: tuple, kwargs: dict[str, Any]) -> Ticket:
        self.poll()
        if operator.key == "allreduce_" and self._is_from_reducer():
            self._on_reducer_call(operator.pick("tensors", args, kwargs))
        group = dist.ProcessGroup.unbox(operator.pick("process_group", args, kwargs))
        name = self._groups.name(group)
        start = f"{name}:p2p" if operator.is_point_to_point else name
        number = self._numbers.get(start, 0)
        self._numbers[start] = number + 1
        key = f"{start}:{number}"
        ticket = Ticket({"op": operator.name, "cseq": number, "key": key, "group": name})
        if self._session.is_open:
            told = {**ticket.fields, **self._told(operator, name, args, kwargs)}
            self._session.emit("coll.issue", told)
            self._open[key] = ticket
        return ticket

    def _told(self, operator: c10d.Operator, group: str, args: tuple, kwargs) -> dict[str, Any]:
        """What coll.issue says beside the number."""
        dtype = c10d.dtype_of(args)
        told = {
            "bytes": max((c10d.bytes_of(arg) for arg in args), default=0),
            "dtype": None if dtype is None else str(dtype).replace("torch.", ""),
            "async": bool(operator.pick("async_op", args, kwargs) in (None, True)),
            "params": self._params(args),
            "tag": operator.pick("tag", args, kwargs),
        }
        root = operator.pick("root_rank", args, kwargs)
        if root is not None:
            told["root"] = self._groups.global_rank(group, root)
        if operator.is_point_to_point:
            side = "dst" if operator.has("dst") else "src"
            peer = operator.pick(side, args, kwargs)
            told["peer"] = -1 if peer is None else self._groups.global_rank(group, peer)
        return told

    def _params(self, args) -> Optional[list[str]]:
        """The parameters whose gradients or data are sent as they are, not in a bucket."""
        tensors = [tensor for arg in args for tensor in c10d.tensors_in(arg)]
        return [name for name in map(self._names.param_at, tensors) if name] or None

    def _is_from_reducer(self) -> bool:
        """C++ calls it in a graph task, and no functional collective does."""
        here = self._here
        is_inside = getattr(here, "depth", 0) or getattr(here, "functional", 0)
        return not is_inside and graph_task_id() != -1

    # ---- completion --------------------------------------------------------------------------

    def _poll(self) -> None:
        """Looks which collectives that Python does not wait for are complete."""
        for ticket in list(self._open.values()):
            work = ticket.work() if isinstance(ticket.work, weakref.ref) else ticket.work
            if work is None:
                if ticket.work is not None:  # dropped without a wait: its end is unknown
                    self._open.pop(ticket.fields["key"], None)
                continue
            if not ticket.is_from_python and _is_done(work):
                self._complete(ticket)

    def _note_work(self, ticket: Optional[Ticket], result: Any) -> None:
        if ticket is None:
            return
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

    def _fail(self, ticket: Optional[Ticket], error: BaseException) -> None:
        if ticket is not None and self._open.pop(ticket.fields["key"], None) is not None:
            first_line = (str(error).splitlines() or [""])[0]
            fields = {"type": type(error).__name__, "message": first_line[:400]}
            self._session.emit("exc", {**fields, "key": ticket.fields["key"]})

    def _watch_works(self, patches: PatchBook) -> None:
        owner = dist.distributed_c10d.ProcessGroup
        for method in c10d.methods_with_work():
            patches.observe(owner, method, self._works, self._method_begins, self._method_ends)
        work = dist.distributed_c10d.Work
        patches.observe(work, "wait", self._works, self._waits, self._has_waited)

    def _method_begins(self, _call: Call) -> None:
        self._here.depth = getattr(self._here, "depth", 0) + 1
        self._here.last = None

    def _method_ends(self, call: Call) -> None:
        here = self._here
        here.depth -= 1
        ticket, here.last = getattr(here, "last", None), None
        if ticket is not None and call.result is not None:
            key = id(call.result)
            ticket.work = weakref.ref(call.result, lambda _: self._by_work.pop(key, None))
            self._by_work[key] = ticket

    def _waits(self, call: Call) -> None:
        call.token = self._by_work.pop(id(call.subject), None)

    def _has_waited(self, call: Call) -> None:
        if call.token is not None and call.failure is None:
            self._complete(call.token)
        elif call.token is not None:
            self._fail(call.token, call.error)

    # ---- functional collectives --------------------------------------------------------------

    def _watch_functional(self, patches: PatchBook) -> None:
        """Their C++ calls c10d's operators, so they are seen; here the caller is recorded."""
        library = torch.library.Library("_c10d_functional", "IMPL")
        patches.then(library._destroy)
        for overload in c10d.functional_operators():
            library.impl(overload, self._functional_kernel(overload), _KEY, with_keyset=True)

    def _functional_kernel(self, overload: Any) -> Callable[..., Any]:
        here, below, poll = self._here, _keys_below(), self.poll

        def kernel(keyset, *args, **kwargs):
            here.functional = getattr(here, "functional", 0) + 1
            try:
                return overload.redispatch(keyset & below, *args, **kwargs)
            finally:
                here.functional -= 1
                poll()

        return kernel


def _keys_below() -> Any:
    key = getattr(torch._C.DispatchKey, _KEY)
    return torch._C._dispatch_keyset_full_after(key)


def _is_done(work) -> bool:
    """DDP waits for the future, which is done a moment before its work says so."""
    if work.is_completed():
        return True
    try:
        return work.get_future().done()
    except RuntimeError:  # a backend without futures
        return False
