"""What a program is given: layers and inputs with seeds, hooks that write events, a trace."""

import platform

import torch
from .graph_snapshot import snapshot
from .probes import dtype_name, flat, graph_task, transforms
from torch import nn
from torch.utils.checkpoint import checkpoint
from .trace_writer import Trace


class Context:
    """One run of one program."""

    def __init__(self, program, device, dtype):
        self.dev, self.dtype = torch.device(device), getattr(torch, dtype)
        self.names, self.keep = {}, []
        self.calls, self.call_no = [], 0
        self.has_graph = program.has_graph
        self._recomputes, self._inputs = {}, 0
        producer = {"tool": "recorder/programs", "torch": torch.__version__}
        producer.update(python=platform.python_version(), device=device, cuda=torch.version.cuda)
        header = {"producer": producer, "program": program.name, "desc": program.purpose}
        if program.order:
            header["expect"] = list(program.order)
        self.trace = Trace({**header, "dtype": dtype, "seed": program.seed})

    # ---- events

    def emit(self, kind, /, **fields):
        """One event in the current graph task."""
        task = graph_task()
        if self.calls and task != -1 and self.calls[-1]["gt"] is None:
            self.calls[-1]["gt"] = task
        stack = transforms()
        if stack:
            fields.setdefault("ft", stack)
        return self.trace.emit(kind, task, len(self.calls), **fields)

    def mark(self, label):
        """A word of the program's own."""
        self.emit("mark", label=str(label))

    # ---- data

    def dump(self, role, name, tensor):
        """A tensor with all its values."""
        record = {"rec": "tensor", "role": role, "name": name}
        if tensor is None:
            self.trace.add({**record, "value": None})
            return
        record.update(shape=list(tensor.shape), dtype=dtype_name(tensor.dtype))
        self.trace.add({**record, "value": flat(tensor)})

    def tensor(self, *shape, name=None, rg=False, hook=True):
        """A random input; `rg`: it requires a gradient, and is a leaf with hooks if `hook`."""
        tensor = torch.randn(*shape, dtype=torch.float64).to(self.dtype).to(self.dev)
        name = name or f"in{self._inputs}"
        self._inputs += 1
        self.dump("input", name, tensor)
        if rg:
            tensor.requires_grad_(True)
            if hook:
                self.leaf(name, tensor)
        return tensor

    def leaf(self, name, param, acc=True, th=False):
        """Names a leaf; `acc`: its accumulation is an event, `th`: so is its tensor hook."""
        self.names[id(param)] = name
        self.keep.append(param)
        record = {"rec": "param", "id": len(self.names) - 1, "name": name}
        record.update(shape=list(param.shape), dtype=dtype_name(param.dtype))
        self.trace.add({**record, "requires_grad": bool(param.requires_grad)})
        if not param.requires_grad:
            return

        def is_due(grad):
            self.emit("param.tensor_hook", param=name, none=grad is None or None)

        def is_accumulated(_):
            self.emit("param.post_acc", param=name, gm=int(torch.is_grad_enabled()))

        if th:
            param.register_hook(is_due)
        if acc:
            param.register_post_accumulate_grad_hook(is_accumulated)

    def grads(self):
        """The gradients of all leaves as they are now."""
        seen = set()
        for tensor in self.keep:
            name = self.names.get(id(tensor))
            if name and name not in seen:
                seen.add(name)
                self.dump("grad", name, tensor.grad)

    # ---- models

    def lin(self, width, out, bias=True):
        """A linear layer, drawn in float64 so that every dtype has the same weights."""
        return nn.Linear(width, out, bias=bias, dtype=torch.float64).to(self.dtype).to(self.dev)

    def model(self, **modules):
        """A module with these children."""
        whole = nn.Module()
        for name, module in modules.items():
            setattr(whole, name, module)
        return whole

    def watch(self, module, acc=True, th=False, fwd=False, bwd=False, dump=True):
        """Observes parameters; `fwd`, `bwd`: True or names of modules whose hooks are events."""
        for name, param in module.named_parameters():
            if dump:
                self.dump("param", name, param)
            self.leaf(name, param, acc=acc, th=th)
        for name, child in module.named_modules():
            if name and (fwd is True or name in (fwd or ())):
                self._watch_forward(name, child)
            if name and (bwd is True or name in (bwd or ())):
                self._watch_backward(name, child)
        return module

    def _watch_forward(self, name, module):
        def event(kind):
            self.emit(kind, module=name, recompute=graph_task() != -1 or None)

        module.register_forward_pre_hook(lambda *_: event("module.fwd_pre"))
        module.register_forward_hook(lambda *_: event("module.fwd_post"))

    def _watch_backward(self, name, module):
        module.register_full_backward_pre_hook(self._event("module.bwd_pre", module=name))
        module.register_full_backward_hook(self._event("module.bwd_post", module=name))

    def _event(self, kind, **fields):
        """A hook that only writes an event."""

        def hook(*_):
            self.emit(kind, **fields)

        return hook

    # ---- hooks

    def hook(self, tensor, label, fn=None, keep=None):
        """A tensor hook that is an event, then `fn` of the gradient; `keep` collects gradients."""

        def event(grad):
            gm = int(torch.is_grad_enabled())
            self.emit("tensor.hook", label=label, none=grad is None or None, gm=gm)
            if keep is not None:
                keep.append(grad)
            return fn(grad) if fn is not None else None

        return tensor.register_hook(event)

    def node_hooks(self, node, label, pre=True, post=True):
        """Hooks of an autograd node."""
        if pre:
            node.register_prehook(self._event("node.prehook", label=label))
        if post:
            node.register_hook(self._event("node.posthook", label=label))

    def queue(self, label, fn=None):
        """A final callback of the current graph task."""

        def callback():
            self.emit("cb.begin", label=label)
            if fn is not None:
                fn()
            self.emit("cb.end", label=label)

        torch.autograd.Variable._execution_engine.queue_callback(callback)
        self.emit("cb.queue", label=label)

    def ckpt(self, label, fn, *args, reentrant, **options):
        """`fn` under a checkpoint whose forward and recomputes are events."""

        def body(*inputs):
            number = self._recomputes.get(label, 0)
            self._recomputes[label] = number + 1
            kind = "ckpt.recompute" if number else "ckpt.forward"
            gm = int(torch.is_grad_enabled())
            self.emit(f"{kind}_begin", label=label, n=number, gm=gm)
            try:
                out = fn(*inputs)
            except BaseException as error:
                is_stop = type(error).__name__ == "_StopRecomputationError"
                word = {"early_stop": True} if is_stop else {"exc": True}
                self.emit(f"{kind}_end", label=label, n=number, **word)
                raise
            self.emit(f"{kind}_end", label=label, n=number)
            return out

        return checkpoint(body, *args, use_reentrant=reentrant, **options)

    def guarded(self, fn):
        """Calls `fn`; what it raises is an event."""
        try:
            fn()
        except Exception as error:
            self.emit("exc", type=type(error).__name__, message=str(error).split("\n")[0][:200])

    # ---- graphs

    def snapshot(self, call, outputs, inputs, accumulates):
        """Writes the graph below `outputs`: see graph_snapshot."""
        return snapshot(self, call, outputs, inputs, accumulates)
