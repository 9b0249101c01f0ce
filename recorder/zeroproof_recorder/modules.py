"""Module forwards, and the models that a job turns out to have."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any, Optional

from torch import nn
from torch.nn.modules import module as module_hooks

from .calls import Function
from .compiler import without_wrapper
from .guard import Guard, Observer
from .names import NameBook
from .options import Detail
from .patches import PatchBook
from .session import Session, graph_task_id

Found = Callable[[nn.Module], None]
_GLOBAL_HOOKS = (
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_forward_pre_hooks",
    "_global_forward_hooks",
)


class GlobalHooks:
    """The hooks that every module call passes: there while steps are recorded.

    Code that torch.compile makes depends on whether there are global hooks, and is made again when
    that changes. So they are there before its first compilation, and then stay until the end.
    """

    def __init__(self, guard: Guard, hooks: Iterable[Any]):
        self._guard = guard
        self._hooks = tuple(hooks)  # each with observer, install(patches)
        self._patches: Optional[PatchBook] = None
        self._stays = False

    def install(self, has_compiled: bool) -> None:
        """At the beginning of a recorded step."""
        if self._patches is not None:
            return
        if has_compiled:
            for hook in self._hooks:
                hook.observer.unobserved("the job compiled code before the recording began")
            return
        self._patches = PatchBook()
        for hook in self._hooks:
            hook.observer.guarded(hook.install)(self._patches)
        for hook in self._hooks[:1]:
            hook.observer.guarded(_hide_from_compiler)(self._patches, hook.observer)

    def stay(self) -> None:
        """Before the first compilation."""
        self.install(False)
        self._stays = True

    def remove(self, is_end: bool = False) -> None:
        """At the end of recorded steps, or of the recording."""
        if self._patches is not None and (is_end or not self._stays):
            self._patches.undo()
            self._patches = None


def _hide_from_compiler(patches: PatchBook, observer: Observer) -> None:
    """A compiled module warns of global hooks, in newer versions; ours are no reason to."""
    if hasattr(module_hooks, "_has_any_global_hook"):
        patches.stand_in(module_hooks, "_has_any_global_hook", observer, _others_have_global_hooks)


def _others_have_global_hooks(_original: Function) -> Function:
    def has_any_global_hook() -> bool:
        tables = (getattr(module_hooks, name, None) or {} for name in _GLOBAL_HOOKS)
        return any(not _is_ours(hook) for table in tables for hook in table.values())

    return has_any_global_hook


def _is_ours(hook: Any) -> bool:
    package = __name__.rpartition(".")[0]
    return str(getattr(hook, "__module__", "")).startswith(f"{package}.")


class ModuleForwards:
    """Emits module.fwd_pre and module.fwd_post of every named module.

    Global hooks run before the modules' own, so the events stand before what those do.
    """

    detail = Detail.ENGINE

    def __init__(self, session: Session, names: NameBook):
        self.observer = session.guard.observer("modules", ("module.fwd_pre", "module.fwd_post"))
        self._session = session
        self._names = names

    def install(self, patches: PatchBook) -> None:
        """Registers the two global hooks."""
        patches.hook(module_hooks.register_module_forward_pre_hook, self.observer, self._on_pre)
        patches.hook(module_hooks.register_module_forward_hook, self.observer, self._on_post)

    def _on_pre(self, module, *_args):
        self._emit("module.fwd_pre", module)

    def _on_post(self, module, *_args):
        self._emit("module.fwd_post", module)

    def _emit(self, kind: str, module: nn.Module) -> None:
        if not self._session.is_open:
            return
        name = self._names.module(module)
        if name is not None:
            recompute = True if graph_task_id() != -1 else None
            self._session.emit(kind, {"module": name, "recompute": recompute})


class ModelFinder:
    """Notices models by their first forward, and hands each on before it runs.

    A script may call a part of its model by itself: what is handed on is the outermost module
    that the part lies in, so that names are whole.
    """

    detail = Detail.HOOKS

    def __init__(self, session: Session, names: NameBook, on_model: Found):
        self.observer = session.guard.observer("models", ("param.*", "module.*"))
        self._session = session
        self._names = names
        self._on_model = on_model
        self._ignored: set[int] = set()

    def install(self, patches: PatchBook) -> None:
        """Registers a global forward pre hook; it is to be installed before ModuleForwards."""
        patches.hook(module_hooks.register_module_forward_pre_hook, self.observer, self._on_pre)

    def find_all(self) -> None:
        """Looks for models whose forward only compiled code has called."""
        for module in _modules():
            self._meet(module)

    def _on_pre(self, module, *_args):
        if self._session.is_open and not self._session.is_muted():
            self._meet(module)

    def _meet(self, module: nn.Module) -> None:
        if id(module) in self._ignored or self._names.module(module) is not None:
            return
        self._ignored.add(id(module))
        if next(module.parameters(), None) is not None:  # a frozen one too: a reference model
            self._on_model(outermost(module))


def outermost(module: nn.Module) -> nn.Module:
    """The module that no other one holds, on the way up from this one. Looks at all objects."""
    parents: dict[int, nn.Module] = {}
    for candidate in _modules():
        for child in candidate.__dict__.get("_modules", {}).values():
            parents.setdefault(id(child), candidate)
    seen = set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module = parents[id(module)]
    return without_wrapper(module)


def _modules() -> list[nn.Module]:
    return [found for found in gc.get_objects() if issubclass(type(found), nn.Module)]
