"""Transforms of torch.func over modules and custom Functions."""

import torch
from .probes import transforms
from .registry import program, sq
from torch import nn


@program(
    "P60_func_grad_closure",
    """torch.func.grad(f)(x), f(x) = sq(l2(tanh(l1(x)))) with the module captured; a tensor hook on
    the inner loss: it fires with a Grad interpreter on the stack; parameter hooks stay silent
    (level-1 wrappers are what the level-1 graph knows; no level-0 backward ran)""",
)
def p60(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), th=True)
    seen = []

    def f(x):
        y = sq(m.l2(torch.tanh(m.l1(x))))
        c.hook(y, "y", lambda g: seen.append(transforms()))
        return y

    g = torch.func.grad(f)(c.tensor(4, name="x"))
    c.dump("output", "g", g)
    c.mark("hook_saw:%s" % ",".join("%s%d" % (k, l) for l, k in seen[0]))


@program(
    "P61_func_grad_params",
    """torch.func.grad over a parameter dict through functional_call: gradients returned, no hook
    of the original parameters fires and .grad stays None""",
)
def p61(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), th=True)
    x = c.tensor(3, 4)

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.l1, self.l2 = m.l1, m.l2

        def forward(self, t):
            return sq(self.l2(torch.tanh(self.l1(t))))

    net = Net()
    params = dict(net.named_parameters())
    g = torch.func.grad(lambda p: torch.func.functional_call(net, p, (x,)))(params)
    for n, t in g.items():
        c.dump("output", "g_" + n, t)
    c.mark("no_grad_attr:%s" % all(p.grad is None for p in net.parameters()))


@program(
    "P62_vmap_grad",
    """vmap(grad(f)) over a batch of 3: one graph task for the whole batch; the hook sees [Vmap1,
    Grad2]""",
)
def p62(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    seen = []

    def f(x):
        y = sq(m.l2(torch.tanh(m.l1(x))))
        c.hook(y, "y", lambda g: seen.append(transforms()))
        return y

    g = torch.func.vmap(torch.func.grad(f))(c.tensor(3, 4, name="xs"))
    c.dump("output", "g", g)
    c.mark("hook_saw:%s" % ",".join("%s%d" % (k, l) for l, k in seen[0]))


@program(
    "P63_jacrev",
    """jacrev(f)(x): the Grad level is pushed and popped around the forward; the vjp runs later
    under vmap, so the backward (and its hooks) sees a Vmap interpreter and dead Grad wrappers""",
)
def p63(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    seen = []

    def f(x):
        y = torch.tanh(m.l2(torch.tanh(m.l1(x))))
        c.hook(y, "y", lambda g: seen.append(transforms()))
        return y

    j = torch.func.jacrev(f)(c.tensor(4, name="x"))
    c.dump("output", "jac", j)
    c.mark("hook_saw:%s" % ",".join("%s%d" % (k, l) for l, k in seen[0]))


@program(
    "P64_func_grad_then_backward",
    """g = torch.func.grad(f)(x) with captured trainable parameters, then sq(g).backward() at level
    0: the transform built a level-0 graph (create_graph), so now the parameter hooks fire""",
)
def p64(c):
    m = c.watch(c.model(l1=c.lin(4, 5, False), l2=c.lin(5, 2, False)))
    x = c.tensor(2, 4, name="x")
    g = torch.func.grad(lambda t: sq(m.l2(torch.tanh(m.l1(t)))))(x)
    sq(g).backward()


@program(
    "P65_grad_and_value_nested",
    """grad(lambda x: sq(grad(f)(x)))(x): levels 1 and 2; two graph tasks, inner one first, nested
    inside the outer transform but not inside the outer graph task""",
)
def p65(c):
    w = c.tensor(4, name="w", rg=True)

    def f(x):
        return torch.sin(x * w).sum()

    g = torch.func.grad(lambda x: sq(torch.func.grad(f)(x)))(c.tensor(4, name="x"))
    c.dump("output", "g", g)


@program("P66_hessian", "hessian(f) = jacfwd(jacrev(f)): order of interpreter pushes")
def p66(c):
    w = c.tensor(3, name="w", rg=True)
    hs = torch.func.hessian(lambda x: torch.sin(x * w).sum())(c.tensor(3, name="x"))
    c.dump("output", "hessian", hs)


class OldStyle(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class NewStyle(torch.autograd.Function):

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g * 2


class NewStyleVmap(NewStyle):
    generate_vmap_rule = True


@program(
    "P67_custom_function_func",
    """custom autograd.Function under transforms: without setup_context it raises under grad; with
    it grad works; vmap additionally needs generate_vmap_rule=True or a vmap staticmethod""",
)
def p67(c):
    x = c.tensor(3, name="x")

    def attempt(label, fn):
        try:
            fn()
            c.mark(label + ":ok")
        except Exception as e:
            c.mark(label + ":" + type(e).__name__)

    attempt("old_grad", lambda: torch.func.grad(lambda t: OldStyle.apply(t).sum())(x))
    attempt("new_grad", lambda: torch.func.grad(lambda t: NewStyle.apply(t).sum())(x))
    attempt("new_vmap", lambda: torch.func.vmap(NewStyle.apply)(x))
    attempt("gen_vmap", lambda: torch.func.vmap(NewStyleVmap.apply)(x))
    attempt(
        "gen_vmap_grad",
        lambda: torch.func.vmap(torch.func.grad(lambda t: NewStyleVmap.apply(t)))(x),
    )
    attempt("old_plain", lambda: OldStyle.apply(x))


@program(
    "P68_func_banned_calls",
    """inside torch.func.grad: retain_grad, requires_grad_() and tensor.backward() are refused or
    not; register_hook is allowed""",
)
def p68(c):
    res = {}

    def attempt(label, fn):
        try:
            fn()
            res[label] = "ok"
        except Exception as e:
            res[label] = type(e).__name__

    def f(x):
        y = x * 2
        attempt("retain_grad", y.retain_grad)
        attempt("requires_grad_", lambda: torch.ones(2).requires_grad_())
        attempt("register_hook", lambda: y.register_hook(lambda g: None))
        return y.sum()

    torch.func.grad(f)(c.tensor(3, name="x"))
    for k in ("retain_grad", "requires_grad_", "register_hook"):
        c.mark("%s:%s" % (k, res[k]))
