"""torch.compile: when it works, and how to be no part of what it compiles."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch

from .calls import Call
from .imports import ImportWatch
from .patches import PatchBook
from .session import Session

_MODULE = "torch._dynamo.callback"
_LOST = ("mark", "gt.*", "module.*")


class Compiler:
    """Marks when the compiler begins and ends, and mutes what its thread does in between.

    Dynamo looks at the frames that run below a compiled function. Ours are skipped, and in those
    that it inlines (hooks, replaced methods) the first line leads to the original.
    """

    def __init__(self, session: Session, before_first: Callable[[], None]):
        self._session = session
        self._before_first = before_first
        self._observer = session.guard.observer("compiler", _LOST)
        self._observer.at_off = self._unmute
        self._depth = 0
        self.compilations = 0

    def install(self, patches: PatchBook) -> None:
        """Waits for PyTorch to import its compiler, which takes long and may never happen."""
        self.compilations = _frames_compiled_before()
        watch = ImportWatch(_MODULE, self._observer, lambda: self._watch(patches))
        watch.install(patches)

    def _watch(self, patches: PatchBook) -> None:
        _skip_our_frames()
        handler = getattr(sys.modules[_MODULE], "CompilationCallbackHandler", None)
        if patches.observe(handler, "run_start_callbacks", self._observer, self._begins):
            patches.observe(handler, "run_end_callbacks", self._observer, after=self._ends)

    def _begins(self, _call: Call) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        if not self.compilations:
            self._before_first()
        self.compilations += 1
        self._session.emit("mark", {"label": "compiler.begin"})
        self._session.compiling_on = threading.get_ident()

    def _ends(self, _call: Call) -> None:
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0 and self._session.compiling_on is not None:
            self._session.compiling_on = None
            self._session.emit("mark", {"label": "compiler.end"})

    def _unmute(self) -> None:
        self._session.compiling_on = None


def compiled_parts(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The modules that torch.compile has replaced, as they were before."""
    wrapper = _optimized_module()
    return [without_wrapper(part) for part in model.modules() if _is_compiled(part, wrapper)]


def without_wrapper(model: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile was given."""
    wrapper = _optimized_module()
    while wrapper is not None and isinstance(model, wrapper):
        model = model._orig_mod
    return model


def compiled_autograd_is_on() -> bool:
    """Whether the compiler also takes over the backward."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


def _is_compiled(module: torch.nn.Module, wrapper: Optional[type]) -> bool:
    if getattr(module, "_compiled_call_impl", None) is not None:
        return True
    return wrapper is not None and isinstance(module, wrapper)


def _optimized_module() -> Optional[type]:
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)


def _frames_compiled_before() -> int:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
    return sum(counters["frames"].values()) if "frames" in counters else 0


def _skip_our_frames() -> None:
    frames = torch._C._dynamo.eval_frame
    skip = getattr(frames, "skip_code", None)  # until 2.6
    if skip is None:
        action = frames._FrameAction
        only_this_frame = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip(code: types.CodeType) -> None:
            frames.set_code_exec_strategy(code, only_this_frame)

    for code in _our_code():
        skip(code)


def _our_code() -> Iterator[types.CodeType]:
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for value in list(vars(module).values()):
                yield from _code_of(value, module.__name__)


def _code_of(value: Any, module: str) -> Iterator[types.CodeType]:
    if getattr(value, "__module__", None) != module and not isinstance(value, types.CodeType):
        value = getattr(value, "__func__", getattr(value, "fget", value))
    if isinstance(value, types.FunctionType) and value.__module__ == module:
        yield from _nested(value.__code__)
    elif isinstance(value, type) and value.__module__ == module:
        for part in list(vars(value).values()):
            yield from _code_of(part, module)


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            yield from _nested(item)
