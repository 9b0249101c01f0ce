"""Gradient hooks: one observer a parameter, and a bracket around the engine's own hook."""

from __future__ import annotations

from torch import nn

from .calls import Call
from .names import NameBook
from .options import Detail
from .patches import PatchBook
from .session import Session


class ParameterHooks:
    """Observers fire first among the post-accumulate hooks of their parameter."""

    def __init__(self, session: Session, names: NameBook, patches: PatchBook):
        self._session = session
        self._names = names
        self._patches = patches
        self._observer = session.guard.observer("parameters", ("param.post_acc",))
        self._engine_hooks = session.guard.observer("grad_hooks", ("engine.call", "engine.return"))
        self._watched: set[int] = set()
        self._has_engine = session.options.detail >= Detail.ENGINE

    def watch(self, model: nn.Module, engine: int) -> None:
        """Hooks every parameter of a model that can get a gradient."""
        bracket = self._engine_hooks.guarded(self._bracket_engine_hooks)
        observe = self._observer.guarded(self._observe)
        for param in model.parameters():
            is_new = id(param) not in self._watched
            if is_new and param.requires_grad and param.is_leaf:
                self._watched.add(id(param))
                if self._has_engine:
                    bracket(param, engine)
                observe(param, engine)

    def _observe(self, param, engine: int) -> None:
        names, emit = self._names, self._session.emit
        name = names.param(param)
        fields = {"param": name, "engine": engine}
        none = {"param": name, "engine": engine, "grad_none": True}
        has_engine = self._has_engine
        emit_fields = self._session.emitter("param.post_acc", fields)

        def accumulated(leaf):
            grad = leaf.grad
            if grad is None:
                emit("param.post_acc", none)
            elif has_engine:
                names.note_memory(leaf, grad)
                emit("param.post_acc", {**fields, "grad_shape": list(grad.shape)})
            else:
                emit_fields()

        register = param.register_post_accumulate_grad_hook
        handle = self._patches.hook(register, self._observer, accumulated)
        param._post_accumulate_grad_hooks.move_to_end(handle.id, last=False)

    def _bracket_engine_hooks(self, param, engine: int) -> None:
        """DeepSpeed's own hook becomes an engine.call; its place in the order stays."""
        hooks = param._post_accumulate_grad_hooks or {}
        for key, hook in list(hooks.items()):
            if str(getattr(hook, "__module__", "")).startswith("deepspeed."):
                self._bracket(hooks, key, param, engine)

    def _bracket(self, hooks, key: int, param, engine: int) -> None:
        emit = self._session.emit
        fields = {"method": "grad_hook", "param": self._names.param(param), "engine": engine}

        def begins(_call: Call) -> None:
            emit("engine.call", fields)

        def ends(call: Call) -> None:
            kept = True if call.subject.grad is not None else None
            emit("engine.return", {**fields, "grad_kept": kept, "exc": call.failure})

        self._patches.observe_entry(hooks, key, self._engine_hooks, begins, ends)
