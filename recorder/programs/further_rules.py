"""Further rules: captures, devices, lifetimes, steps inside a backward."""

import gc

import torch
from .probes import node_seq
from .callbacks import where_hooks_run
from .registry import program, sq


@program(
    "P78_capture_nonleaf",
    """h = tanh(l1(x)), loss = sq(l2(h)); torch.autograd.grad(loss, [h]): h's tensor hook runs (the
    engine reaches it) but h's node is not executed, so its node hooks stay silent""",
)
def p78(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = torch.tanh(m.l1(c.tensor(3, 4)))
    keep = []
    c.hook(h, "h", keep=keep)
    c.node_hooks(h.grad_fn, "h")
    (g,) = torch.autograd.grad(sq(m.l2(h)), [h])
    c.mark("same:%s" % torch.equal(g, keep[0]))


@program(
    "P79_backward_inputs_nonleaf",
    """the same graph with loss.backward(inputs=[h]): h retains its gradient (after the tensor
    hook), its node is marked needed and executes (node hooks fire) but no node below it runs""",
)
def p79(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = torch.tanh(m.l1(c.tensor(3, 4)))
    keep = []
    c.hook(h, "h", lambda g: g * 2, keep=keep)
    c.node_hooks(h.grad_fn, "h")
    sq(m.l2(h)).backward(inputs=[h])
    c.mark("h.grad_is_hooked:%s" % torch.equal(h.grad, keep[0] * 2))


@program(
    "P80_multithreading_disabled",
    """set_multithreading_enabled(False): the whole backward, hooks and callbacks included, runs on
    the calling thread, on CUDA too""",
)
def p80(c):
    with torch.autograd.set_multithreading_enabled(False):
        where_hooks_run(c)


@program(
    "P81_cuda_streams",
    """forward on a side stream, backward called from the default stream: l1's hooks run with the
    side stream current (the stream AccumulateGrad was created on), the final callback runs on
    the caller's stream, already ordered after the leaf stream""",
    needs="cuda",
)
def p81(c):
    m = c.watch(c.model(l1=c.lin(4, 5)))
    x = c.tensor(3, 4)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    res = {}
    with torch.cuda.stream(side):
        loss = sq(m.l1(x))
    caller = torch.cuda.current_stream().cuda_stream
    c.hook(
        loss,
        "loss",
        lambda g: c.queue("a", lambda: res.update(cb=torch.cuda.current_stream().cuda_stream)),
    )
    m.l1.weight.register_post_accumulate_grad_hook(
        lambda p: res.update(acc=torch.cuda.current_stream().cuda_stream)
    )
    torch.cuda.current_stream().wait_stream(side)
    loss.backward()
    c.mark("acc_on_side:%s" % (res["acc"] == side.cuda_stream))
    c.mark("cb_on_caller:%s" % (res["cb"] == caller))
    want = (2 * m.l1(x)).t() @ x
    c.mark("grad_ok:%s" % torch.allclose(m.l1.weight.grad, want))


@program(
    "P82_accgrad_lifetime",
    """AccumulateGrad of leaf p: one node while something owns it (two graphs share it); once every
    graph is gone the node and the hooks registered on it are gone; tensor and post-accumulate
    hooks live on the tensor and survive""",
    nodes=False,
)
def p82(c):
    p = c.tensor(3, name="p", rg=True, hook=False)
    c.leaf("p", p, th=True)
    y, z = p * 2, p * 3
    a, b = y.grad_fn.next_functions[0][0], z.grad_fn.next_functions[0][0]
    c.mark("shared:%s" % (a is b))
    c.node_hooks(a, "lost", pre=False)
    del y, z, a, b
    gc.collect()
    sq(p * 2).backward()
    y = p * 2
    keep = y.grad_fn.next_functions[0][0]
    c.node_hooks(keep, "acc", pre=False)
    del y
    gc.collect()
    sq(p * 2).backward()
    del keep


@program(
    "P83_grad_mode_in_hooks",
    """hooks and callbacks run with grad mode equal to create_graph: False for a plain backward,
    True for backward(create_graph=True)""",
)
def p83(c):
    w = c.tensor(3, name="w", rg=True)
    w.register_post_accumulate_grad_hook(lambda p: c.mark("acc:%s" % torch.is_grad_enabled()))
    for create in (False, True):
        loss = sq(w)
        c.hook(
            loss, "loss", lambda g: c.queue("a", lambda: c.mark("cb:%s" % torch.is_grad_enabled()))
        )
        loss.backward(create_graph=create)
        w.grad = None


@program(
    "P84_module_hooks_in_ckpt",
    """module backward hooks on l1 and l2 inside a checkpoint (reentrant, then non-reentrant), x
    requires grad: reentrant hooks belong to the recomputed graph; non-reentrant ones to the
    original graph, with the recompute in between""",
)
def p84(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), bwd=True)
    x = c.tensor(3, 4, name="x", rg=True)
    for lab, re in (("R", True), ("N", False)):
        sq(c.ckpt(lab, lambda t: m.l2(torch.tanh(m.l1(t))), x, reentrant=re)).backward()


@program(
    "P85_two_engines_one_loss",
    """two models with their own output hooks queueing their own 'epilogue' callback, loss =
    sq(A(x)) + sq(B(x)) (B computed last): both callbacks land in the one graph task, in the
    order in which the outputs are reached: B then A, after all leaves""",
)
def p85(c):
    m = c.watch(c.model(A=c.model(l=c.lin(4, 3)), B=c.model(l=c.lin(4, 3))))
    x = c.tensor(2, 4)
    a = m.A.l(x)
    b = m.B.l(x)
    c.hook(a, "outA", lambda g: c.queue("epilogueA"))
    c.hook(b, "outB", lambda g: c.queue("epilogueB"))
    (sq(a) + sq(b)).backward()


@program(
    "P86_loss_used_in_two_backwards",
    """one output hook queueing a callback at most once per graph task: out -> two losses,
    backward(retain_graph=True) on each: the hook fires in each graph task and each task runs
    its own callback""",
)
def p86(c):
    m = c.watch(c.model(l=c.lin(4, 3)))
    out = m.l(c.tensor(2, 4))
    c.hook(out, "out", lambda g: c.queue("e"))
    sq(out).backward(retain_graph=True)
    out.abs().sum().backward()


@program(
    "P87_retain_before_prehook",
    """y = x*2 retains grad and has a node prehook: the retained .grad is already set when the node
    prehook runs, and it does not see what the prehook returns (prehook doubles the incoming
    gradient: x.grad doubles, y.grad does not)""",
)
def p87(c):
    x = c.tensor(3, name="x", rg=True)
    y = x * 2
    y.retain_grad()

    def pre(gs):
        c.mark("y.grad_set_in_prehook:%s" % (y.grad is not None))
        return (gs[0] * 2,)

    y.grad_fn.register_prehook(pre)
    sq(y).backward()
    c.mark("y.grad_plain:%s" % torch.allclose(y.grad, 2 * y.detach()))
    c.mark("x.grad_doubled:%s" % torch.allclose(x.grad, 2 * y.detach() * 2 * 2))


@program(
    "P88_posthook_replaces_grad_inputs",
    """node posthook of y = x*2 returns 10 * grad_inputs: x receives the replaced value; order
    prehook, posthook, then x""",
)
def p88(c):
    x = c.tensor(3, name="x", rg=True)
    y = x * 2
    c.node_hooks(y.grad_fn, "y", post=False)

    def post(gi, go):
        c.mark("post")
        return (gi[0] * 10,) + tuple(gi[1:])

    y.grad_fn.register_hook(post)
    sq(y).backward()
    c.mark("x.grad_x10:%s" % torch.allclose(x.grad, 2 * y.detach() * 2 * 10))


@program(
    "P89_partial_outputs",
    """a module returns two tensors through one Function-like op (unbind) and only one is used: the
    unused output contributes an undefined gradient; the layer below still accumulates exactly
    once""",
)
def p89(c):
    m = c.watch(c.model(l=c.lin(4, 2)))
    a, b = m.l(c.tensor(3, 4)).unbind(1)
    sq(a).backward()


@program(
    "P90_leaf_as_root",
    """loss is itself a leaf: p.backward() with a scalar leaf: the root is AccumulateGrad""",
)
def p90(c):
    p = c.tensor(1, name="p", rg=True, hook=False)
    c.leaf("p", p, th=True)
    p.backward()


@program(
    "P91_capture_and_needed",
    """y = 2x with a tensor hook that triples the gradient. autograd.grad(sq(y), [y]): y is only
    captured, so the result has the hook's effect. autograd.grad(sq(y), [y, x]): y is captured
    and also needed for x: the value returned for y does NOT have the hook's effect, the one for
    x does; the hook fires exactly once in either call""",
)
def p91(c):
    x = c.tensor(3, name="x", rg=True, hook=False)
    c.leaf("x", x, th=True)
    y = x * 2
    c.hook(y, "y", lambda g: g * 3)
    loss = sq(y)
    (gy,) = torch.autograd.grad(loss, [y], retain_graph=True)
    c.mark("only_captured_y_x3:%s" % torch.allclose(gy, 2 * y.detach() * 3))
    gy, gx = torch.autograd.grad(loss, [y, x])
    c.mark("needed_y_plain:%s" % torch.allclose(gy, 2 * y.detach()))
    c.mark("needed_x_x3:%s" % torch.allclose(gx, 2 * y.detach() * 3 * 2))


@program(
    "P92_multi_grad_with_root",
    """multi-grad hook (mode all) on (y, loss) where loss is the only root: the root is not in the
    visited set, so one call is expected instead of two: the hook fires at the root with only
    the loss gradient, and a second time at y with only y's""",
)
def p92(c):
    x = c.tensor(3, name="x", rg=True)
    y = x * 2
    c.hook(y, "y")
    loss = sq(y)
    torch.autograd.graph.register_multi_grad_hook(
        (y, loss), lambda gs: c.mark("got:" + ",".join(str(g is not None) for g in gs))
    )
    loss.backward()


@program(
    "P93_sequence_numbers",
    """who takes a sequence number (difference of two probe nodes minus 1): op without grad-
    requiring input 0; op on a grad leaf 1; custom Function without grad-requiring input 1;
    under no_grad 1; custom Function's own number is smaller than those of nodes made inside its
    forward; backward with two roots 1 (artificial root), with one root 0""",
    nodes=False,
)
def p93(c):
    x = c.tensor(3, name="x", rg=True)
    y = c.tensor(3, name="y")
    inner = []

    class Fn(torch.autograd.Function):

        @staticmethod
        def forward(ctx, t):
            with torch.enable_grad():
                inner.append((x * 2).grad_fn)
            return t * 1

        @staticmethod
        def backward(ctx, g):
            return g

    class Id(torch.autograd.Function):

        @staticmethod
        def forward(ctx, t):
            return t * 1

        @staticmethod
        def backward(ctx, g):
            return g

    def probe():
        return node_seq((x * 1).grad_fn)

    def count(label, fn):
        a = probe()
        fn()
        c.mark("%s:%d" % (label, probe() - a - 1))

    def quiet():
        with torch.no_grad():
            Id.apply(x)

    count("plain_op", lambda: y * 2)
    count("grad_op", lambda: x * 2)
    count("function_no_grad_input", lambda: Id.apply(y))
    count("function_under_no_grad", quiet)
    out = Fn.apply(x)
    c.mark("outer_smaller:%s" % (node_seq(out.grad_fn) < node_seq(inner[0])))
    a, b = sq(x * 2), sq(x * 3)
    count("two_roots", lambda: torch.autograd.backward([a, b]))
    a = sq(x * 2)
    count("one_root", lambda: a.backward())


@program(
    "P94_callback_in_autograd_grad",
    """autograd.grad with a hook on the captured tensor that queues a callback: final callbacks
    belong to every kind of graph task, and run before autograd.grad returns""",
)
def p94(c):
    m = c.watch(c.model(l=c.lin(4, 3)), th=True)
    h = m.l(c.tensor(2, 4))
    c.hook(h, "h", lambda g: c.queue("e"))
    torch.autograd.grad(sq(h), [h, m.l.bias])
    c.mark("returned")


@program(
    "P95_post_acc_of_nested_parent_leaf",
    """leaf p used in the outer graph and in a backward that the outer backward's tensor hook
    starts (its own new graph on p): the nested task accumulates p first, the outer one adds
    later; two post-accumulate events, tasks nested""",
)
def p95(c):
    p = c.tensor(3, name="p", rg=True)
    y = p * 2

    def nested(g):
        with torch.enable_grad():
            sq(p * 5).backward()

    c.hook(y, "y", nested)
    sq(y).backward()
