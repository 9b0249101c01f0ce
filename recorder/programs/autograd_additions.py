"""What PyTorch 2.12 to 2.15 added where a program can see it; `since` is the first release."""

import contextlib

import torch
from .registry import program, sq
from torch.utils.checkpoint import checkpoint


def refused(c, body):
    """An exception of PyTorch or of a hook becomes an event."""
    try:
        body()
    except (RuntimeError, ValueError) as error:
        c.emit("exc", type=type(error).__name__, message=str(error).split("\n")[0][:200])


class FusedScale(torch.autograd.Function):
    """The sum of inputs times 2, 3, ...; its backward adds into what a slot has, where it may."""

    @staticmethod
    def forward(ctx, c, label, *inputs):
        ctx.c, ctx.label = c, label
        return sum(x * (place + 2) for place, x in enumerate(inputs))

    @staticmethod
    def backward(ctx, grad):
        buffers = ctx.input_grad_buffers[2:]
        words = ["none" if buffer is None else "buffer" for buffer in buffers]
        ctx.c.mark("%s:%s" % (ctx.label, ",".join(words)))
        grads = []
        for place, buffer in enumerate(buffers):
            share = grad * (place + 2)
            if buffer is None:
                grads.append(share)
                continue
            ctx.c.dump("output", "%s.buffer%d" % (ctx.label, place), buffer)
            buffer.add_(share)
            grads.append(None)
        return (None, None, *grads)


@program(
    "P99_input_grad_buffers",
    """a Function that adds into ctx.input_grad_buffers and returns None: of a leaf and of a
    non-leaf after another use, before it (no buffer), after two, and under autograd.grad; hooks
    of the next node run once, on the sum""",
    since=(2, 15),
)
def input_grad_buffers(c):
    x = c.tensor(3, name="x", rg=True)
    y = c.tensor(3, name="y", rg=True)
    (FusedScale.apply(c, "leaf", x) + x * 5).sum().backward()
    h = torch.tanh(x)
    c.hook(h, "h")
    c.node_hooks(h.grad_fn, "h", post=False)
    (FusedScale.apply(c, "after", h, y) + h * 5).sum().backward()
    h = torch.tanh(x)
    other = h * 5
    (FusedScale.apply(c, "before", h) + other).sum().backward()
    h = torch.tanh(x)
    (FusedScale.apply(c, "third", h) + h * 3 + h * 7).sum().backward()
    h = torch.tanh(x)
    loss = (FusedScale.apply(c, "grad", h, y) + h * 3 + y * 4).sum()
    c.dump("output", "grad", torch.autograd.grad(loss, [h])[0])


@program(
    "P100_input_grad_buffers_shared",
    """no buffer where someone else sees it: a gradient that went on unchanged to two nodes, an
    expanded one, and the second entry of one input given twice; two such Functions take turns""",
    since=(2, 15),
)
def input_grad_buffers_shared(c):
    x = c.tensor(3, name="x", rg=True)
    h = torch.tanh(x)
    ((FusedScale.apply(c, "alias", h) + (h + 0.0)) * 2).sum().backward()
    h = torch.tanh(x)
    (FusedScale.apply(c, "expanded", h).sum() + h.sum()).backward()
    h = torch.tanh(x)
    (FusedScale.apply(c, "twice", h, h) + h * 3).sum().backward()
    h = torch.tanh(x)
    (FusedScale.apply(c, "first", h) + FusedScale.apply(c, "second", h) + h * 3).sum().backward()


class NestedBackward(torch.autograd.Function):
    """Looks at the buffer of its input, then runs a backward of its own."""

    @staticmethod
    def forward(ctx, c, x):
        ctx.c = c
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        buffer = ctx.input_grad_buffers[1]
        ctx.c.mark("nested:%s" % ("none" if buffer is None else "buffer"))
        leaf = torch.ones(2, dtype=grad.dtype, requires_grad=True)
        with torch.enable_grad():
            loss = (leaf * leaf).sum()
        loss.backward()
        return None, grad * 2


@program(
    "P101_input_grad_buffers_refused",
    """create_graph, a posthook on the Function's node, and a nested backward once a buffer was
    given out raise RuntimeError; a nested backward without a buffer runs""",
    since=(2, 15),
)
def input_grad_buffers_refused(c):
    x = c.tensor(3, name="x", rg=True)

    def twice_used():
        h = torch.tanh(x)
        fused = FusedScale.apply(c, "refused", h)
        return fused, (fused + h * 3).sum()

    refused(c, lambda: twice_used()[1].backward(create_graph=True))
    fused, loss = twice_used()
    c.node_hooks(fused.grad_fn, "fused", pre=False)
    refused(c, loss.backward)
    h = torch.tanh(x)
    refused(c, (NestedBackward.apply(c, h) + h * 3).sum().backward)
    h = torch.tanh(x)
    other = h * 3
    refused(c, (NestedBackward.apply(c, h) + other).sum().backward)


def queue_publicly(c, label, then=None):
    """torch.autograd.graph.queue_callback, or what it calls where there is none."""

    def callback():
        c.emit("cb.begin", label=label)
        if then is not None:
            then()
        c.emit("cb.end", label=label)

    engine = torch.autograd.Variable._execution_engine
    getattr(torch.autograd.graph, "queue_callback", engine.queue_callback)(callback)
    c.emit("cb.queue", label=label)


@program(
    "P102_queue_callback_public",
    """torch.autograd.graph.queue_callback: outside a backward it raises; from a tensor hook, a
    post-accumulate hook, a posthook and a callback it runs last in order of queueing; in a nested
    backward before that one returns; after an exception not at all""",
)
def queue_callback_public(c):
    x = c.tensor(3, name="x", rg=True)
    refused(c, lambda: queue_publicly(c, "outside"))
    h = torch.tanh(x)
    h.register_hook(lambda grad: queue_publicly(c, "a", lambda: queue_publicly(c, "last")))
    h.grad_fn.register_hook(lambda inputs, outputs: queue_publicly(c, "b"))
    handle = x.register_post_accumulate_grad_hook(lambda leaf: queue_publicly(c, "c"))
    sq(h).backward()
    handle.remove()

    def nested(grad):
        inner = torch.ones(2, dtype=c.dtype, requires_grad=True)
        inner.register_hook(lambda grad: queue_publicly(c, "inner"))
        queue_publicly(c, "outer")
        with torch.enable_grad():
            loss = sq(inner)
        loss.backward()
        c.mark("inner_done")

    h = torch.tanh(x)
    h.register_hook(nested)
    sq(h).backward()

    def failing(grad):
        raise ValueError("after a callback was queued")

    h = torch.tanh(x)
    h.register_hook(lambda grad: queue_publicly(c, "lost"))
    h.register_hook(failing)
    refused(c, sq(h).backward)


class Watching(contextlib.AbstractContextManager):
    """A context that marks how it is entered and left, and may stop what passes."""

    def __init__(self, c, label, stops=False):
        self.c, self.label, self.stops = c, label, stops

    def __enter__(self):
        self.c.mark(self.label + "+")

    def __exit__(self, kind, error, traceback):
        self.c.mark("%s-%s" % (self.label, kind.__name__ if kind else ""))
        return self.stops


def watching(c, label, stops_forward=False, stops_recompute=False):
    """context_fn of one region."""
    return lambda: (
        Watching(c, label + ".forward", stops_forward),
        Watching(c, label + ".recompute", stops_recompute),
    )


@program(
    "P103_ckpt_contexts",
    """context_fn of non-reentrant checkpoints: entered around the body inside forward and
    recompute; an early stop passes through the recompute's as _StopRecomputationError, or stops
    there; nested regions; not entered with grad mode off""",
)
def ckpt_contexts(c):
    x = c.tensor(3, name="x", rg=True)

    def region(label, body, value, **options):
        options.setdefault("context_fn", watching(c, label))
        return c.ckpt(label, body, value, reentrant=False, **options)

    def body(value):
        return torch.sin(torch.exp(value))

    sq(region("early", body, x)).backward()
    sq(region("late", body, x, early_stop=False)).backward()
    stopping = watching(c, "stopped", stops_recompute=True)
    sq(region("stopped", body, x, context_fn=stopping)).backward()
    sq(region("outer", lambda v: torch.exp(region("inner", body, torch.tanh(v))), x)).backward()
    with torch.no_grad():
        region("no_grad", body, x)


@program(
    "P104_ckpt_context_exceptions",
    """an exception of the body reaches the forward context's exit before the caller, innermost
    region first; a context that stops it leaves no value to return: RuntimeError; in a recompute
    it passes through the recompute's context, or ends as an incomplete recompute""",
    since=(2, 13),
)
def ckpt_context_exceptions(c):
    x = c.tensor(3, name="x", rg=True)

    def failing(value):
        torch.sin(value)
        raise ValueError("in the body")

    def region(label, body, value, **stops):
        context = watching(c, label, **stops)
        return c.ckpt(label, body, value, reentrant=False, context_fn=context)

    refused(c, lambda: region("forward", failing, x))
    refused(c, lambda: region("stopped", failing, x, stops_forward=True))
    refused(c, lambda: region("outer", lambda v: region("inner", failing, torch.tanh(v)), x))
    sq(torch.exp(x)).backward()
    for label, stops in (("recompute", False), ("swallowed", True)):
        runs = []

        def fails_again(value):
            first = torch.sin(value)
            runs.append(0)
            if len(runs) == 2:
                raise ValueError("in the recompute")
            return torch.sin(first)

        loss = sq(region(label, fails_again, x, stops_recompute=stops))
        refused(c, loss.backward)


class NoGradients(torch.autograd.Function):
    """Two outputs, two inputs, and no gradient for any of them."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 1, y * 1

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        return None, None


@program(
    "P105_undefined_everywhere",
    """undefined gradients go on: hooks of tensors, nodes and leaves run and see None; a leaf's
    gradient stays as it was; a posthook that returns Nones makes them; after the identity of a
    module's backward hooks they become zeros""",
)
def undefined_everywhere(c):
    x = c.tensor(3, name="x", rg=True, hook=False)
    y = c.tensor(3, name="y", rg=True, hook=False)
    c.leaf("x", x, th=True)
    c.leaf("y", y, th=True)
    h, k = x * 2, y * 3
    c.hook(h, "h")
    c.hook(k, "k")
    c.node_hooks(h.grad_fn, "h")
    h.retain_grad()
    a, b = NoGradients.apply(h, k)
    (a.sum() + b.sum()).backward()
    c.mark("h.grad:%s" % (h.grad is None))
    sq(x * 2).backward()
    a, b = NoGradients.apply(x, y)
    (a + b + y).sum().backward()
    h = x * 2
    h.grad_fn.register_hook(lambda inputs, outputs: (None,) * len(inputs))
    sq(h).backward()


@program(
    "P106_inputs_as_dict",
    """backward(inputs=dict) accumulates into the values of the dict alone""",
    since=(2, 13),
)
def inputs_as_dict(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), th=True)
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    loss.backward(inputs={"w": m.l1.weight, "b": m.l2.bias})


@program(
    "P107_module_hooks_without_grad_inputs",
    """full backward hooks of a module whose input needs no gradient run with its outputs' node,
    pre hooks first; pre hooks alone run there too""",
)
def module_hooks_without_grad_inputs(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), bwd=("l1",))
    m.l2.register_full_backward_pre_hook(lambda module, grads: c.mark("l2.pre"))
    sq(m.l2(c.tensor(3, 5))).backward()
    sq(m.l1(c.tensor(3, 4))).backward()


class TwoDtypes(torch.autograd.Function):
    """Copies its inputs; the gradient of the first copy comes in float32, the other as it is."""

    @staticmethod
    def forward(ctx, c, declared, x, y):
        ctx.c = c
        if declared is not None:
            ctx.set_output_grad_dtype(*declared)
        return x * 1, y * 1

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        names = [str(grad.dtype).replace("torch.", "") for grad in (grad_x, grad_y)]
        ctx.c.mark("grads:" + ",".join(names))
        return None, None, grad_x.bfloat16(), grad_y.bfloat16()


class InFloat32(torch.autograd.Function):
    """Its gradient is float32 whatever its input was."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad.float() * 1.0009765625


@program(
    "P108_output_grad_dtype",
    """ctx.set_output_grad_dtype(float32, None) for two bfloat16 outputs: the first gradient is
    cast to float32, also for tensor hooks, the second stays as it comes; without it both are
    cast to bfloat16; an output without a gradient gives zeros in its own dtype; a wrong number of
    dtypes raises""",
    since=(2, 14),
)
def output_grad_dtype(c):
    c.dtype = torch.bfloat16
    x = c.tensor(3, name="x", rg=True)
    y = c.tensor(3, name="y", rg=True)
    declared = (torch.float32, None)
    for dtypes in (None, declared):
        a, b = TwoDtypes.apply(c, dtypes, x, y)
        a.register_hook(lambda grad: c.mark("hook:" + str(grad.dtype).replace("torch.", "")))
        (InFloat32.apply(a).sum() + InFloat32.apply(b).sum()).backward()
    for place in (0, 1):
        TwoDtypes.apply(c, declared, x, y)[place].sum().backward()
    refused(c, lambda: TwoDtypes.apply(c, (torch.float32,), x, y))


def marking(c, label=""):
    """A hook that marks the node's class."""
    return torch.autograd.graph.node_creation_hook(
        lambda node: c.mark("new:%s%s" % (label, type(node).__name__))
    )


@program(
    "P109_node_creation_hook",
    """torch.autograd.graph.node_creation_hook sees each node once it is complete, a leaf's
    AccumulateGrad when it is made; nested ones outermost first; in recomputes and with
    create_graph too; hooks that it registers run; a node made inside it raises""",
    since=(2, 14),
)
def node_creation_hook(c):
    x = c.tensor(3, name="x", rg=True)
    w = c.tensor(3, name="w", rg=True)
    with marking(c):
        loss = (torch.tanh(x * w) * 3).sum()
    loss.backward()
    with marking(c, "outer."), marking(c, "inner."):
        loss = FusedCopy.apply(x).sum()
    loss.backward()
    for reentrant in (True, False):
        with marking(c):
            region = checkpoint(lambda v: torch.sin(torch.exp(v)), x, use_reentrant=reentrant)
            c.mark("backward")
            region.sum().backward()
    loss = torch.sin(x).sum()
    with marking(c):
        loss.backward(create_graph=True)

    def observe(node):
        c.node_hooks(node, type(node).__name__)

    with torch.autograd.graph.node_creation_hook(observe):
        loss = (torch.tanh(x) * 3).sum()
    loss.backward()

    def makes_a_node(node):
        x * 2

    def inside():
        with torch.autograd.graph.node_creation_hook(makes_a_node):
            torch.tanh(x)

    refused(c, inside)


class FusedCopy(torch.autograd.Function):
    """A copy, with a saved tensor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad
