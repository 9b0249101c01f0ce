"""Plain graphs: order of layers, branches, roots, pruned inputs, hooks of tensors."""

import torch
import torch.nn.functional as F
from .registry import program, sq


@program(
    "P01_mlp2",
    """x[3,4] (no grad) -> l1 Linear(4,5) -> tanh -> l2 Linear(5,2); loss = sum of squares;
    backward""",
)
def p01(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    c.dump("output", "loss", loss)
    loss.backward()


@program(
    "P02_mlp3_nobias",
    """x[3,4] -> l1 -> relu -> l2 -> relu -> l3, all without bias; loss = sum of squares""",
)
def p02(c):
    m = c.watch(c.model(l1=c.lin(4, 5, False), l2=c.lin(5, 6, False), l3=c.lin(6, 2, False)))
    x = c.tensor(3, 4)
    sq(m.l3(F.relu(m.l2(F.relu(m.l1(x)))))).backward()


@program("P03_mlp2_3d", "as P01 but x is [2,3,4], so Linear flattens and un-flattens around addmm")
def p03(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    sq(m.l2(torch.tanh(m.l1(c.tensor(2, 3, 4))))).backward()


@program(
    "P04_tied",
    """one Linear l(4,4) applied twice: sq(l(tanh(l(x)))): each AccumulateGrad runs once, after
    both uses""",
)
def p04(c):
    m = c.watch(c.model(l=c.lin(4, 4)))
    sq(m.l(torch.tanh(m.l(c.tensor(3, 4))))).backward()


@program(
    "P05_branches",
    """h = tanh(l0(x)); a = la(h); b = lb(h) (b computed last); loss = sum(a*b): the branch whose
    forward ran last goes first""",
)
def p05(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    a = m.la(h)
    b = m.lb(h)
    (a * b).sum().backward()


@program(
    "P06_branches_swapped",
    """as P05 but lb(h) is computed before la(h); the product is still a*b""",
)
def p06(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    b = m.lb(h)
    a = m.la(h)
    (a * b).sum().backward()


@program(
    "P07_heap_ties",
    """seven leaf vectors p0..p6 of length 2 concatenated: cat(p0..p6).pow(2).sum(): all seven
    AccumulateGrad nodes become ready at once with the same priority; the order is that of a
    non-stable binary heap (libstdc++ push_heap/pop_heap)""",
)
def p07(c):
    ps = [c.tensor(2, name="p%d" % i, rg=True) for i in range(7)]
    sq(torch.cat(ps)).backward()


@program("P08_unused_param", "l_unused is never used; l1 and l2 as in P01")
def p08(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l_unused=c.lin(4, 4), l2=c.lin(5, 2)))
    sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))).backward()


@program("P09_frozen", "l1.weight frozen, l2 frozen, l3 trainable; tanh between; x needs no grad")
def p09(c):
    m = c.model(l1=c.lin(4, 4), l2=c.lin(4, 4), l3=c.lin(4, 2))
    m.l1.weight.requires_grad_(False)
    m.l2.weight.requires_grad_(False)
    m.l2.bias.requires_grad_(False)
    c.watch(m)
    sq(m.l3(torch.tanh(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))))).backward()


@program(
    "P10_non_scalar",
    """out = l2(tanh(l1(x))), out.backward(g) with explicit g[3,2]; the root is the last addmm
    itself""",
)
def p10(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    out = m.l2(torch.tanh(m.l1(c.tensor(3, 4))))
    out.backward(c.tensor(3, 2, name="g"))


@program(
    "P11_multi_root",
    """shared trunk l0, heads la then lb; torch.autograd.backward([loss_a, loss_b]): one graph task
    with an artificial root; loss_b's branch (later) first. On CUDA the artificial root runs on
    the calling thread and feeds the device queue, so which branch the device thread sees first
    is a race""",
)
def p11(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    la = sq(m.la(h))
    lb = sq(m.lb(h))
    torch.autograd.backward([la, lb])


@program(
    "P12_two_losses",
    """same trunk/heads; loss_a.backward(retain_graph=True) then loss_b.backward(): two graph
    tasks, trunk hooks fire twice""",
)
def p12(c):
    m = c.watch(c.model(l0=c.lin(4, 5), la=c.lin(5, 3), lb=c.lin(5, 3)))
    h = torch.tanh(m.l0(c.tensor(2, 4)))
    la = sq(m.la(h))
    lb = sq(m.lb(h))
    la.backward(retain_graph=True)
    lb.backward()


@program(
    "P13_retain_twice_then_error",
    """loss.backward(retain_graph=True) twice, then backward() (frees), then backward() again fails
    when a freed saved tensor is needed""",
)
def p13(c):
    m = c.watch(c.model(l=c.lin(4, 3)))
    loss = sq(m.l(c.tensor(2, 4)))
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    loss.backward()
    c.guarded(loss.backward)


@program(
    "P14_inputs_pruning",
    """three layers; loss.backward(inputs=[l1.weight]): nodes without a path to it are skipped;
    only l1.weight accumulates""",
)
def p14(c):
    m = c.watch(c.model(l1=c.lin(4, 4), l2=c.lin(4, 4), l3=c.lin(4, 2)), th=True)
    loss = sq(m.l3(torch.tanh(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))))
    loss.backward(inputs=[m.l1.weight])


@program(
    "P15_autograd_grad",
    """torch.autograd.grad(loss, [l1.weight, l2.bias]): captured leaves run tensor hooks, never
    accumulate; no hook fires for the other parameters""",
)
def p15(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), th=True)
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    g = torch.autograd.grad(loss, [m.l1.weight, m.l2.bias])
    c.dump("output", "g_l1.weight", g[0])
    c.dump("output", "g_l2.bias", g[1])


@program(
    "P16_leaf_hook_kinds",
    """leaf p[3]; registered in this order: post-accumulate A, AccumulateGrad node posthook,
    AccumulateGrad node prehook, tensor hook A, tensor hook B, post-accumulate B; loss = sq(p*2)""",
)
def p16(c):
    p = c.tensor(3, name="p", rg=True, hook=False)
    c.leaf("p", p, acc=False)
    p.register_post_accumulate_grad_hook(lambda q: c.mark("postacc_A"))
    y = p * 2
    acc = y.grad_fn.next_functions[0][0]
    c.node_hooks(acc, "acc", pre=False)
    c.node_hooks(acc, "acc", post=False)
    c.hook(p, "A")
    c.hook(p, "B")
    p.register_post_accumulate_grad_hook(lambda q: c.mark("postacc_B"))
    sq(y).backward()


@program(
    "P17_nonleaf_hook_kinds",
    """x[3] leaf; y = x*2: retain_grad, node posthook, node prehook, tensor hook A (returns 3g),
    tensor hook B (returns g+1); loss = sq(y). retain_grad stores the value after all tensor
    hooks even though it was registered first""",
)
def p17(c):
    x = c.tensor(3, name="x", rg=True)
    y = x * 2
    y.retain_grad()
    c.node_hooks(y.grad_fn, "y", pre=False)
    c.node_hooks(y.grad_fn, "y", post=False)
    c.hook(y, "A", lambda g: g * 3)
    c.hook(y, "B", lambda g: g + 1)
    sq(y).backward()
    c.mark("y.grad_is_3g+1:%s" % torch.allclose(y.grad, 2 * y.detach() * 3 + 1))


@program(
    "P18_detach_nograd",
    """h = l1(x); loss = sq(l2(tanh(h).detach())) + sq(l3(tanh(h))); l4 runs under no_grad: l4 gets
    no gradient""",
)
def p18(c):
    m = c.watch(c.model(l1=c.lin(4, 4), l2=c.lin(4, 2), l3=c.lin(4, 2), l4=c.lin(4, 2)))
    h = torch.tanh(m.l1(c.tensor(2, 4)))
    a = sq(m.l2(h.detach()))
    b = sq(m.l3(h))
    with torch.no_grad():
        m.l4(h)
    (a + b).backward()
