"""Activation checkpoints of either kind, nested, tied, frozen, with errors."""

import torch
import torch.nn.functional as F
from .registry import program, sq


def around_first_layer(c, reentrant):
    """The loss of l2 over a checkpoint of tanh and l1."""
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), fwd=True)
    x = c.tensor(3, 4, name="x", rg=True)
    h = c.ckpt("c", lambda t: torch.tanh(m.l1(t)), x, reentrant=reentrant)
    sq(m.l2(h)).backward()


def nested(c, reentrant):
    """The loss of a checkpoint of tanh and l2 over a checkpoint of tanh and l1."""
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), fwd=True)

    def outer(t):
        h = c.ckpt("i", lambda u: torch.tanh(m.l1(u)), t, reentrant=reentrant)
        return torch.tanh(m.l2(h))

    sq(c.ckpt("o", outer, c.tensor(3, 4, name="x", rg=True), reentrant=reentrant)).backward()


@program(
    "P23_ckpt_reentrant",
    """x leaf requires grad; h = reentrant checkpoint(tanh o l1)(x); loss = sq(l2(h))""",
)
def p23(c):
    around_first_layer(c, reentrant=True)


@program(
    "P24_ckpt_nonreentrant",
    """as P23 with use_reentrant=False: no nested graph task; recompute starts when the first saved
    tensor is unpacked (inside tanh's node) and stops early inside tanh, after l1's forward
    hook; x is a leaf reached directly from addmm, so it accumulates before the transposed
    weight""",
)
def p24(c):
    around_first_layer(c, reentrant=False)


@program(
    "P25_ckpt_nonreentrant_tail",
    """checkpoint(l2 o tanh o l1)(x), use_reentrant=False, x needs no grad: the last saved tensors
    belong to l2's addmm, so the early stop unwinds out of l2.forward and l2's forward hook
    never fires""",
)
def p25(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), fwd=True)
    y = c.ckpt("c", lambda t: m.l2(torch.tanh(m.l1(t))), c.tensor(3, 4), reentrant=False)
    sq(y).backward()


@program(
    "P26_ckpt_no_early_stop",
    """as P25 under set_checkpoint_early_stop(False): the recompute runs to the end""",
)
def p26(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), fwd=True)
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        y = c.ckpt("c", lambda t: m.l2(torch.tanh(m.l1(t))), c.tensor(3, 4), reentrant=False)
    sq(y).backward()


@program(
    "P27_ckpt_nested_reentrant",
    """outer reentrant checkpoint whose body is tanh o l2 o inner reentrant checkpoint(tanh o
    l1)""",
)
def p27(c):
    nested(c, reentrant=True)


@program(
    "P28_ckpt_nested_nonreentrant",
    """the same nesting with use_reentrant=False: the outer recompute builds throw-away inner
    frames; the original inner frame recomputes when its own saved tensor is needed""",
)
def p28(c):
    nested(c, reentrant=False)


@program(
    "P29_ckpt_nonreentrant_retain",
    """P24's graph, backward(retain_graph=True) then backward(): one recompute per graph task""",
)
def p29(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = c.ckpt("c", lambda t: torch.tanh(m.l1(t)), c.tensor(3, 4), reentrant=False)
    loss = sq(m.l2(h))
    loss.backward(retain_graph=True)
    loss.backward()


@program(
    "P30_ckpt_reentrant_inputs_error",
    """P23's graph, but backward(inputs=[l2.bias, x]): the checkpoint node sits on the path to x; a
    graph task with exec_info is not checkpoint-valid, so the node raises after l2.bias
    accumulated; then torch.autograd.grad(.., [l2.weight]) works because the checkpoint node is
    pruned""",
)
def p30(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4, name="x", rg=True)
    h = c.ckpt("c", lambda t: torch.tanh(m.l1(t)), x, reentrant=True)
    loss = sq(m.l2(h))
    c.guarded(lambda: loss.backward(inputs=[m.l2.bias, x], retain_graph=True))
    torch.autograd.grad(loss, [m.l2.weight])


@program(
    "P31_ckpt_reentrant_tied",
    """one Linear l used in two reentrant checkpoints A then B: every nested task accumulates and
    fires the hooks on its own, so each parameter fires twice""",
)
def p31(c):
    m = c.watch(c.model(l=c.lin(4, 4)))
    h = c.ckpt("A", lambda t: torch.tanh(m.l(t)), c.tensor(3, 4, name="x", rg=True), reentrant=True)
    y = c.ckpt("B", lambda t: torch.tanh(m.l(t)), h, reentrant=True)
    sq(y).backward()


@program(
    "P32_ckpt_reentrant_tied_outside",
    """l used inside a reentrant checkpoint and again outside it: fires in the outer task first,
    then again in the nested one""",
)
def p32(c):
    m = c.watch(c.model(l=c.lin(4, 4)))
    h = c.ckpt("A", lambda t: torch.tanh(m.l(t)), c.tensor(3, 4, name="x", rg=True), reentrant=True)
    sq(m.l(h)).backward()


@program(
    "P33_ckpt_nonreentrant_tied",
    """P31 with use_reentrant=False: one graph task, one firing per parameter, after both
    regions""",
)
def p33(c):
    m = c.watch(c.model(l=c.lin(4, 4)))
    h = c.ckpt(
        "A", lambda t: torch.tanh(m.l(t)), c.tensor(3, 4, name="x", rg=True), reentrant=False
    )
    y = c.ckpt("B", lambda t: torch.tanh(m.l(t)), h, reentrant=False)
    sq(y).backward()


@program(
    "P34_ckpt_reentrant_nograd_input",
    """reentrant checkpoint whose only tensor input needs no grad: the Function gets no graph node,
    so l1 inside never receives gradients (l2 does)""",
)
def p34(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    h = c.ckpt("c", lambda t: torch.tanh(m.l1(t)), c.tensor(3, 4), reentrant=True)
    sq(m.l2(h)).backward()


@program(
    "P35_ckpt_frozen_inside",
    """x requires grad; blocks of [l1 frozen -> tanh -> l2 trainable] in a checkpoint (both
    variants, reentrant first), head l3""",
)
def p35(c):
    m = c.model(l1=c.lin(4, 4), l2=c.lin(4, 4), l3=c.lin(4, 2))
    m.l1.weight.requires_grad_(False)
    m.l1.bias.requires_grad_(False)
    c.watch(m)
    x = c.tensor(3, 4, name="x", rg=True)
    for lab, re in (("R", True), ("N", False)):
        h = c.ckpt(lab, lambda t: m.l2(torch.tanh(m.l1(t))), x, reentrant=re)
        sq(m.l3(h)).backward()


@program(
    "P36_ckpt_rng",
    """dropout inside a checkpoint: the recompute must see the forward's RNG state and restore the
    surrounding one afterwards (marks compare the dropout masks and the RNG state around
    backward)""",
)
def p36(c):
    m = c.watch(c.model(l1=c.lin(4, 6)))
    x = c.tensor(3, 4, name="x", rg=True)
    for lab, re in (("R", True), ("N", False)):
        seen = []

        def body(t):
            h = F.dropout(m.l1(t), 0.5, training=True)
            seen.append((h.detach() == 0).cpu())
            return torch.tanh(h)

        y = c.ckpt(lab, body, x, reentrant=re)
        torch.rand(3)  # disturb the ambient stream
        state = torch.get_rng_state()
        sq(y).backward()
        c.mark("%s:mask_equal:%s" % (lab, torch.equal(seen[0], seen[1])))
        c.mark("%s:rng_restored:%s" % (lab, torch.equal(state, torch.get_rng_state())))


@program(
    "P37_backward_in_ckpt_body",
    """non-reentrant checkpoint whose body itself calls torch.autograd.grad (create_graph=True) on
    the recomputed value: y = sin(x*w); g = grad(sum y, x); out = g*w; the call inside forward
    already needs a recompute""",
)
def p37(c):
    w = c.tensor(3, name="w", rg=True)
    x = c.tensor(3, name="x")

    def body(t):
        t = t.detach().requires_grad_(True)
        y = torch.sin(t * w)
        (g,) = torch.autograd.grad(y.sum(), t, create_graph=True)
        return g * w

    out = c.ckpt("c", body, x, reentrant=False)
    sq(out).backward()
