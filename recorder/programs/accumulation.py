"""Gradient accumulation, undefined gradients, data that is swapped."""

import gc

import torch
from .registry import program, sq


@program(
    "P53_grad_accumulation",
    """two micro-batches, grads kept between them, then zero_grad(set_to_none=True) and a third:
    first accumulation stores the incoming tensor, the second adds in place (same grad object),
    after set_to_none a new one""",
)
def p53(c):
    m = c.watch(c.model(l=c.lin(4, 3)))
    a, b = c.tensor(2, 4), c.tensor(2, 4)
    sq(m.l(a)).backward()
    g1 = m.l.weight.grad
    sq(m.l(b)).backward()
    c.mark("same_grad_object:%s" % (m.l.weight.grad is g1))
    for p in m.parameters():
        p.grad = None
    sq(m.l(a)).backward()
    c.mark("new_after_none:%s" % (m.l.weight.grad.data_ptr() != g1.data_ptr()))


@program(
    "P54_steal_or_clone",
    """five leaves of shape [4], one backward each: plain = sum(p*w) (incoming tensor stolen);
    expanded = p.sum() (stride-0 gradient: cloned); held = a tensor hook keeps the incoming
    gradient (cloned); create = create_graph (cloned); passed = p.backward(g) of the leaf itself
    with a caller-held g (cloned)""",
    nodes=False,
)
def p54(c):
    ptr = {}

    def run(name, loss_fn, keep=False, **kw):
        p = c.tensor(4, name=name, rg=True)
        kept = []

        def h(g):
            ptr[name] = g.data_ptr()
            if keep:
                kept.append(g)

        p.register_hook(h)
        loss_fn(p).backward(**kw)
        c.mark("%s:%s" % (name, "stolen" if p.grad.data_ptr() == ptr[name] else "cloned"))

    w = c.tensor(4, name="w")
    run("plain", lambda p: (p * w).sum())
    run("expanded", lambda p: p.sum())
    run("held", lambda p: (p * w).sum(), keep=True)
    run("create", lambda p: (p * w).sum(), create_graph=True)
    g = c.tensor(4, name="g")
    p = c.tensor(4, name="passed", rg=True)
    p.backward(g)
    c.mark("passed:%s" % ("stolen" if p.grad.data_ptr() == g.data_ptr() else "cloned"))


class NoneGrad(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * w, None


@program(
    "P55_undefined_grad",
    """Function(x, w) returns None for w: AccumulateGrad(w) still executes with an undefined
    gradient: its tensor hook gets None, no gradient accumulates, and (2.7 or newer) the post-
    accumulate hook fires all the same with .grad still None; up to 2.6 it did not fire. The
    node posthook fires in both; _will_engine_execute_node says True""",
)
def p55(c):
    x = c.tensor(3, name="x", rg=True)
    w = c.tensor(3, name="w", rg=True, hook=False)
    c.leaf("w", w, th=True)
    y = NoneGrad.apply(x, w)
    accw = y.grad_fn.next_functions[1][0]
    c.node_hooks(accw, "accw", pre=False)
    loss = sq(y)
    loss.register_hook(
        lambda g: c.mark("will_execute_w:%s" % torch._C._will_engine_execute_node(accw))
    )
    loss.backward()
    c.mark("w.grad:%s" % w.grad)


@program(
    "P56_requires_grad_off_late",
    """w.requires_grad_(False) between forward and backward: AccumulateGrad(w) still executes and
    runs tensor hooks, does not accumulate, and (2.7 or newer) still fires post-accumulate
    hooks; up to 2.6 it did not""",
)
def p56(c):
    x = c.tensor(3, name="x", rg=True)
    w = c.tensor(3, name="w", rg=True, hook=False)
    c.leaf("w", w, th=True)
    loss = sq(w * x)
    w.requires_grad_(False)
    loss.backward()
    c.mark("w.grad:%s" % w.grad)


@program(
    "P57_inplace_moves_hooks",
    """y = x*2, hook A; y.mul_(3), hook B; loss = sq(y): hook B belongs to the new grad_fn and runs
    first with dloss/dy_new; A stays with the old one (dloss/dy_old = 3x)""",
)
def p57(c):
    x = c.tensor(3, name="x", rg=True)
    y = x * 2
    keepA, keepB = [], []
    c.hook(y, "A", keep=keepA)
    y.mul_(3)
    c.hook(y, "B", keep=keepB)
    sq(y).backward()
    c.mark("ratio_A_over_B:%.1f" % float((keepA[0] / keepB[0])[0]))


@program(
    "P58_create_graph",
    """g = autograd.grad(loss, params, create_graph=True) then sum of squares of g backward
    (gradient penalty) on x -> l1 -> tanh -> l2 without bias: only the second call fires
    parameter hooks""",
)
def p58(c):
    m = c.watch(c.model(l1=c.lin(4, 5, False), l2=c.lin(5, 2, False)))
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    gs = torch.autograd.grad(loss, list(m.parameters()), create_graph=True)
    sum(sq(g) for g in gs).backward()


@program(
    "P59_data_swap",
    """ZeRO-3 style storage swap: after forward l1.weight.data becomes empty(0); the l2 node's
    tensor hook puts the full data back before l1's node runs; AccumulateGrad keeps the metadata
    it had when created, so the full-size gradient is accepted; then creating AccumulateGrad
    while the data is empty makes the engine reject the gradient""",
)
def p59(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4)
    w = m.l1.weight
    full = w.data.clone()
    h = m.l1(x)
    y = sq(m.l2(torch.tanh(h)))
    w.data = torch.empty(0, dtype=w.dtype, device=w.device)

    def restore(g):
        w.data = full
        c.mark("restored")

    c.hook(y, "h", restore)
    y.backward()
    c.mark("bad")
    for p in m.parameters():
        p.grad = None
    del h, y
    gc.collect()
    # AccumulateGrad is created while the tensor is empty and kept alive by `keep`
    w.data = torch.empty(0, dtype=w.dtype, device=w.device)
    keep = torch.autograd.graph._get_grad_fn_or_grad_acc(w)
    w.data = full
    loss = sq(m.l1(x))
    c.guarded(loss.backward)
    del keep
    w.grad = None
