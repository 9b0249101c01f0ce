"""Hooks of modules, hooks over several gradients, which node will execute."""

import torch
from .registry import program, sq
from torch import nn


@program(
    "P19_module_bwd_hooks",
    """l1(x) -> tanh -> l2, x needs no grad; full backward (pre) hooks on l1 and l2. l2's input
    needs grad: its full hook waits for grad_input; l1's input does not: its full hook fires
    with the pre hook, before l1's own parameters""",
)
def p19(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)), bwd=True)
    sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))).backward()


class Block(nn.Module):

    def __init__(self, l1, l2):
        super().__init__()
        self.l1, self.l2 = l1, l2

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


@program(
    "P20_nested_module_hooks",
    """block(l1 -> tanh -> l2), x requires grad; forward and backward hooks on block, l1, l2""",
)
def p20(c):
    m = c.watch(c.model(block=Block(c.lin(4, 5), c.lin(5, 2))), fwd=True, bwd=True)
    sq(m.block(c.tensor(3, 4, name="x", rg=True))).backward()


@program(
    "P21_multi_grad",
    """register_multi_grad_hook mode=all and mode=any on (l1.weight, l2.weight, l_unused.weight):
    'any' inside the first leaf's tensor hooks, 'all' inside the last one's, i.e. before that
    leaf accumulates; the unused leaf is not waited for""",
)
def p21(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2), l_unused=c.lin(2, 2)))
    ts = (m.l1.weight, m.l2.weight, m.l_unused.weight)
    torch.autograd.graph.register_multi_grad_hook(
        ts, lambda gs: c.emit("multi.hook", label="all", got=[g is not None for g in gs])
    )
    torch.autograd.graph.register_multi_grad_hook(
        ts, lambda g: c.emit("multi.hook", label="any"), mode="any"
    )
    sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))).backward()


@program(
    "P22_will_execute",
    """inside l2.bias's post-accumulate hook ask _will_engine_execute_node for AccumulateGrad of
    l1.weight, l2.weight, l_unused.weight and for the root node: reachable leaves True (also
    when already done), unused False; the single root is not in the visited set, so False""",
)
def p22(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2), l_unused=c.lin(2, 2)))
    loss = sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4)))))
    root = loss.grad_fn

    def ask(_):
        for n, p in m.named_parameters():
            if n.endswith("weight"):
                with torch.enable_grad():
                    fn = torch.autograd.graph._get_grad_fn_or_grad_acc(p)
                c.mark("%s:%s" % (n, torch._C._will_engine_execute_node(fn)))
        c.mark("root:%s" % torch._C._will_engine_execute_node(root))

    m.l2.bias.register_post_accumulate_grad_hook(ask)
    loss.backward()
