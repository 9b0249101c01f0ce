"""Wraps what PyTorch runs for a backward, a transform or autocast; quiet while no program runs."""

import torch
from .probes import dtype_name, graph_task, transforms

_ARGUMENTS = ("grad_tensors", "keep_graph", "create_graph", "inputs", "allow_unreachable")
_NESTINGS = (
    ("torch._functorch.eager_transforms", "grad", "Grad"),
    ("torch._functorch.eager_transforms", "jvp", "Jvp"),
    ("torch._functorch.vmap", "vmap", "Vmap"),
)


class Instruments:
    """Installed once; `current` is the context of the program that runs."""

    def __init__(self):
        self.current = None

    def install(self):
        """Replaces the functions."""
        run = self._backward_of(torch.autograd._engine_run_backward)
        for module in (torch.autograd, torch.autograd.graph):
            if hasattr(module, "_engine_run_backward"):
                module._engine_run_backward = run
        for path, word, kind in _NESTINGS:
            self._wrap_nesting(__import__(path, fromlist=["_"]), word, kind)
        self._wrap_autocast()

    def _backward_of(self, original):
        def run(outputs, *args, **options):
            context = self.current
            if context is None:
                return original(outputs, *args, **options)
            given = {**dict(zip(_ARGUMENTS, args)), **options}
            return _recorded(context, outputs, given, lambda: original(outputs, *args, **options))

        return run

    def _wrap_nesting(self, module, word, kind):
        begin, end = f"_{word}_increment_nesting", f"_{word}_decrement_nesting"
        enter, leave = getattr(module, begin, None), getattr(module, end, None)
        if enter is None or leave is None:
            return

        def push(*args, **options):
            level = enter(*args, **options)
            if self.current is not None:
                self.current.emit("ft.push", level=level, kind=kind)
            return level

        def pop(*args, **options):
            stack = transforms()
            if self.current is not None:
                self.current.emit("ft.pop", level=stack[-1][0] if stack else -1, kind=kind)
            return leave(*args, **options)

        setattr(module, begin, push)
        setattr(module, end, pop)

    def _wrap_autocast(self):
        autocast = torch.amp.autocast_mode.autocast
        enter, leave = autocast.__enter__, autocast.__exit__

        def entered(region):
            result = enter(region)
            if self.current is not None:
                self.current.emit(
                    "autocast.enter",
                    device=region.device,
                    enabled=bool(region._enabled),
                    dtype=dtype_name(region.fast_dtype),
                    cache=bool(region._cache_enabled),
                )
            return result

        def left(region, *error):
            if self.current is not None:
                self.current.emit("autocast.exit", device=region.device)
            return leave(region, *error)

        autocast.__enter__, autocast.__exit__ = entered, left


def _recorded(context, outputs, given, run):
    """One backward with its brackets; the task's id is known once an event came from inside."""
    accumulates, inputs = bool(given.get("accumulate_grad")), given.get("inputs") or ()
    call = context.call_no
    context.call_no += 1
    handles, kept = [], []
    if context.has_graph:
        handles, kept = context.snapshot(call, outputs, inputs, accumulates)
    parent = context.calls[-1]["call"] if context.calls else None
    begin = context.emit(
        "gt.begin",
        call=call,
        parent=parent,
        parent_gt=None if parent is None else graph_task(),
        api="backward" if accumulates else "grad",
        keep_graph=bool(given.get("keep_graph")),
        create_graph=bool(given.get("create_graph")),
        n_roots=len(outputs),
        inputs=[context.names.get(id(one)) for one in inputs] if inputs else None,
    )
    frame, failure = {"call": call, "gt": None}, None
    context.calls.append(frame)
    try:
        return run()
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        context.calls.pop()
        end = context.emit("gt.end", call=call, exc=failure)
        begin["gt"] = end["gt"] = -1 if frame["gt"] is None else frame["gt"]
        del kept
        for handle in handles:
            handle.remove()
