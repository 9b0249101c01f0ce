"""Module forwards, and the models that a job turns out to have."""

from __future__ import annotations

import gc
from collections.abc import Callable

from torch import nn
from torch.nn.modules import module as module_hooks

from .names import NameBook
from .patches import PatchBook
from .session import Session, graph_task_id


class ModuleForwards:
    """Emits module.fwd_pre and module.fwd_post of every named module.

    Global hooks run before the modules' own, so the events stand before what those do.
    """

    def __init__(self, session: Session, names: NameBook):
        self._session = session
        self._names = names

    def install(self, patches: PatchBook) -> None:
        """Registers the two global hooks."""
        observer = self._session.guard.observer("modules", ("module.fwd_pre", "module.fwd_post"))
        patches.hook(module_hooks.register_module_forward_pre_hook, observer, self._on_pre)
        patches.hook(module_hooks.register_module_forward_hook, observer, self._on_post)

    def _on_pre(self, module, _args):
        self._emit("module.fwd_pre", module)

    def _on_post(self, module, _args, _output):
        self._emit("module.fwd_post", module)

    def _emit(self, kind: str, module: nn.Module) -> None:
        name = self._names.module(module)
        if name is not None:
            recompute = True if graph_task_id() != -1 else None
            self._session.emit(kind, {"module": name, "recompute": recompute})


class ModelFinder:
    """Notices models by their first forward, and hands each on before it runs.

    A script may call a part of its model by itself: what is handed on is the outermost module
    that the part lies in, so that names are whole.
    """

    def __init__(self, session: Session, names: NameBook, on_model: Callable[[nn.Module], None]):
        self._observer = session.guard.observer("models", ("param.*", "module.*"))
        self._names = names
        self._on_model = on_model
        self._ignored: set[int] = set()

    def install(self, patches: PatchBook) -> None:
        """Registers a global forward pre hook; it is to be installed before ModuleForwards."""
        patches.hook(module_hooks.register_module_forward_pre_hook, self._observer, self._on_pre)

    def _on_pre(self, module, _args):
        if id(module) in self._ignored or self._names.module(module) is not None:
            return
        self._ignored.add(id(module))
        if next(module.parameters(), None) is not None:  # a frozen one too: a reference model
            self._on_model(outermost(module))


def outermost(module: nn.Module) -> nn.Module:
    """The module that no other one holds, on the way up from this one. Looks at all objects."""
    parents: dict[int, nn.Module] = {}
    for candidate in gc.get_objects():
        if issubclass(type(candidate), nn.Module):
            for child in candidate.__dict__.get("_modules", {}).values():
                parents.setdefault(id(child), candidate)
    seen = set()
    while id(module) in parents and id(module) not in seen:
        seen.add(id(module))
        module = parents[id(module)]
    return module
