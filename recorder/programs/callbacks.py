"""Final callbacks, nested backwards, exceptions, threads."""

import threading

import torch
from .registry import program, sq


@program(
    "P38_queue_callback",
    """callbacks a (queued from the loss tensor hook), b (from l1.weight's post-accumulate hook,
    the last leaf); a queues c while running: all run after every node, in queue order, c last,
    still inside the graph task""",
)
def p38(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    c.hook(loss, "loss", lambda g: c.queue("a", lambda: c.queue("c")))
    m.l1.weight.register_post_accumulate_grad_hook(lambda p: c.queue("b"))
    loss.backward()


@program(
    "P39_queue_callback_nested",
    """reentrant checkpoint: 'outer' queued from l2.bias (outer task), 'inner' from l1.bias (nested
    task): inner runs when the nested task ends, outer at the very end""",
)
def p39(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = c.ckpt(
        "c", lambda t: torch.tanh(m.l1(t)), c.tensor(3, 4, name="x", rg=True), reentrant=True
    )
    m.l2.bias.register_post_accumulate_grad_hook(lambda p: c.queue("outer"))
    m.l1.bias.register_post_accumulate_grad_hook(lambda p: c.queue("inner"))
    sq(m.l2(h)).backward()


@program("P40_queue_callback_outside", "queue_callback with no graph task on this thread raises")
def p40(c):
    c.guarded(lambda: c.queue("x"))


@program(
    "P41_callback_runs_backward",
    """the final callback of one backward runs another complete backward (different graph): a
    nested graph task inside post-processing of the first""",
)
def p41(c):
    m = c.watch(c.model(l1=c.lin(4, 3), l2=c.lin(4, 3)))
    x = c.tensor(2, 4)
    other = sq(m.l2(x))
    loss = sq(m.l1(x))
    c.hook(loss, "loss", lambda g: c.queue("a", other.backward))
    loss.backward()
    c.mark("depth_ok")


class TiledLoss(torch.autograd.Function):
    """Loss whose forward runs backward per tile (the TiledFusedLogitsLoss pattern)."""

    @staticmethod
    def forward(ctx, c, head, h, shards):
        c.emit("fn.forward_begin", label="tiled")
        hd = h.detach()
        grad = torch.zeros_like(hd)
        total = torch.zeros((), dtype=hd.dtype, device=hd.device)
        for i, part in enumerate(hd.chunk(shards, 0)):
            part = part.detach().requires_grad_(True)
            with torch.enable_grad():
                out = sq(head(part))
            torch.autograd.backward(out, torch.ones_like(out))
            n = part.shape[0]
            grad[i * n : (i + 1) * n] = part.grad
            total = total + out.detach()
        ctx.save_for_backward(grad)
        ctx.c = c
        c.emit("fn.forward_end", label="tiled")
        return total

    @staticmethod
    def backward(ctx, g):
        ctx.c.emit("fn.backward_begin", label="tiled")
        (grad,) = ctx.saved_tensors
        ctx.c.emit("fn.backward_end", label="tiled")
        return None, None, grad * g, None


@program(
    "P42_backward_in_forward",
    """l1(x) -> tanh -> TiledLoss(head, 2 tiles): the loss Function calls backward once per tile
    inside forward, so head's hooks fire twice before the user's backward; the user's backward
    reaches only l1""",
)
def p42(c):
    m = c.watch(c.model(l1=c.lin(4, 5), head=c.lin(5, 3, False)))
    h = torch.tanh(m.l1(c.tensor(4, 4)))
    TiledLoss.apply(c, m.head, h, 2).backward()


class NestedBackward(torch.autograd.Function):
    """Function whose backward builds and differentiates a fresh graph (reentrant engine call)."""

    @staticmethod
    def forward(ctx, c, label, fn, x):
        ctx.c, ctx.label, ctx.fn = c, label, fn
        ctx.save_for_backward(x)
        return fn(x)

    @staticmethod
    def backward(ctx, g):
        c = ctx.c
        c.emit("fn.backward_begin", label=ctx.label)
        x = ctx.saved_tensors[0].detach().requires_grad_(True)
        with torch.enable_grad():
            y = ctx.fn(x)
        torch.autograd.backward(y, g)
        c.emit("fn.backward_end", label=ctx.label)
        return None, None, None, x.grad


@program(
    "P43_reentrant_priority",
    """two ready branches: a = NestedBackward(tanh o la)(h) computed first, b = lb(h) computed
    last; loss = sum(a*b). b runs first (sequence number); when a's node starts a nested task,
    the nested tasks' nodes (deeper) precede everything left of the outer task""",
)
def p43(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    a = NestedBackward.apply(c, "a", lambda t: torch.tanh(m.la(t)), h)
    b = m.lb(h)
    (a * b).sum().backward()


@program(
    "P44_reentrant_priority_swapped",
    """as P43 with b computed first: the nested task of a runs while lb's nodes are already queued
    in the outer task; they wait""",
)
def p44(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    b = m.lb(h)
    a = NestedBackward.apply(c, "a", lambda t: torch.tanh(m.la(t)), h)
    (a * b).sum().backward()


class Deep(torch.autograd.Function):

    @staticmethod
    def forward(ctx, c, n, x):
        ctx.c, ctx.n = c, n
        return x * 1.5

    @staticmethod
    def backward(ctx, g):
        ctx.c.emit("fn.backward_begin", label=str(ctx.n))
        if ctx.n > 0:
            with torch.enable_grad():
                t = torch.ones(1, dtype=g.dtype, device=g.device, requires_grad=True)
                y = Deep.apply(ctx.c, ctx.n - 1, t)
            torch.autograd.backward(y, torch.ones_like(y))
        return None, None, g * 1.5


@program(
    "P45_reentrant_depth",
    """a chain of 71 nested backward calls (nesting 0..70): the first 60 nested calls run on the
    calling thread, the 61st is handed to a pool thread""",
    nodes=False,
)
def p45(c):
    x = c.tensor(1, name="x", rg=True, hook=False)
    n = 70
    main = c.trace.thread_index()
    Deep.apply(c, n, x).backward(torch.ones_like(x))
    ths = [e["th"] for e in c.trace.events() if e["k"] == "fn.backward_begin"]
    c.mark("main_levels:%d" % sum(t == main for t in ths))
    c.mark("other_thread_levels:%d" % sum(t != main for t in ths))
    c.mark("distinct_threads:%d" % len(set(ths)))


@program(
    "P46_exception_in_hook",
    """callback a queued first; l2.weight's post-accumulate hook raises: no further node runs, the
    queued callback is dropped, grads accumulated so far stay; a fresh forward/backward
    afterwards is unaffected""",
)
def p46(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4)
    bad = [True]

    def boom(p):
        if bad[0]:
            raise ValueError("injected")

    m.l2.weight.register_post_accumulate_grad_hook(boom)
    loss = sq(m.l2(torch.tanh(m.l1(x))))
    c.hook(loss, "loss", lambda g: c.queue("a"))
    c.guarded(loss.backward)
    c.mark("grads:" + ",".join(sorted(n for n, p in m.named_parameters() if p.grad is not None)))
    bad[0] = False
    sq(m.l2(torch.tanh(m.l1(x)))).backward()


@program(
    "P47_exception_in_callback",
    """callbacks a, b (raises), d: d never runs; every gradient is in place; backward() raises""",
)
def p47(c):
    m = c.watch(c.model(l1=c.lin(4, 5)))
    x = c.tensor(3, 4)

    def boom():
        raise ValueError("injected")

    loss = sq(m.l1(x))

    def q(g):
        c.queue("a")
        c.queue("b", boom)
        c.queue("d")

    c.hook(loss, "loss", q)
    c.guarded(loss.backward)
    sq(m.l1(x)).backward()


@program(
    "P48_exception_nested",
    """reentrant checkpoint; l1.bias's hook raises inside the nested task: nested task fails, the
    exception re-raises out of the checkpoint node, the outer task fails, neither task's
    callbacks run""",
)
def p48(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = c.ckpt(
        "c", lambda t: torch.tanh(m.l1(t)), c.tensor(3, 4, name="x", rg=True), reentrant=True
    )
    m.l2.bias.register_post_accumulate_grad_hook(lambda p: c.queue("outer"))

    def inner(p):
        c.queue("inner")
        raise ValueError("injected")

    m.l1.bias.register_post_accumulate_grad_hook(inner)
    c.guarded(sq(m.l2(h)).backward)


@program(
    "P49_anomaly_nan",
    """detect_anomaly: sqrt at 0 times 0 produces NaN in SqrtBackward's output: the engine raises
    right after that node; l1 never accumulates""",
)
def p49(c):
    m = c.watch(c.model(l1=c.lin(2, 2, False)))
    with torch.no_grad():
        m.l1.weight.zero_()
    with torch.autograd.set_detect_anomaly(True):
        y = torch.sqrt(m.l1(c.tensor(1, 2)))
        c.guarded((y * 0).sum().backward)


@program(
    "P50_hooks_changed_during_backward",
    """l2.bias's hook registers a new post-accumulate hook on l1.bias and removes l1.weight's extra
    hook: leaf hooks are read when the leaf runs, so both changes take effect in this backward""",
)
def p50(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    extra = m.l1.weight.register_post_accumulate_grad_hook(lambda p: c.mark("removed"))

    def change(p):
        m.l1.bias.register_post_accumulate_grad_hook(lambda q: c.mark("late"))
        extra.remove()

    m.l2.bias.register_post_accumulate_grad_hook(change)
    sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))).backward()


def where_hooks_run(c):
    """Marks say whether a hook and a final callback ran on the calling thread."""
    m = c.watch(c.model(l1=c.lin(4, 5)))
    loss = sq(m.l1(c.tensor(3, 4)))
    th = {}
    c.hook(loss, "loss", lambda g: c.queue("a", lambda: th.update(cb=threading.get_ident())))
    m.l1.weight.register_post_accumulate_grad_hook(lambda p: th.update(hook=threading.get_ident()))
    loss.backward()
    c.mark("hook_thread_is_main:%s" % (th["hook"] == threading.get_ident()))
    c.mark("cb_thread_is_main:%s" % (th["cb"] == threading.get_ident()))


@program(
    "P51_cuda_threads",
    """where hooks and callbacks run: CPU tensors: everything on the calling thread; CUDA tensors:
    device thread""",
)
def p51(c):
    where_hooks_run(c)


@program(
    "P52_forward_in_two_threads",
    """branch a on the main thread; branch b later on a fresh thread, where sequence numbers
    restart at zero: a's nodes win although b ran later, and even the trunk's nodes precede b's
    weight transpose""",
)
def p52(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    for _ in range(8):  # make the main thread's numbers clearly larger than the fresh thread's
        torch.tanh(h)
    a = m.la(h)
    out = []
    t = threading.Thread(target=lambda: out.append(m.lb(h)))
    t.start()
    t.join()
    (a * out[0]).sum().backward()
