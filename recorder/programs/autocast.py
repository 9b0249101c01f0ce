"""Autocast: casts, their cache, and checkpoints within."""

import torch
from .registry import program, sq


@program(
    "P69_autocast",
    """bf16 autocast on the program's device around l1 -> tanh -> l2 with float32 parameters,
    backward outside: each weight and bias goes through a cast node; per linear the weight cast
    node has the higher sequence number""",
)
def p69(c):
    c.dtype = torch.float32
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4)
    with torch.autocast(c.dev.type, dtype=torch.bfloat16):
        y = m.l2(torch.tanh(m.l1(x)))
    sq(y.float()).backward()
    c.mark("grad_dtype:%s" % m.l1.weight.grad.dtype)


@program(
    "P70_autocast_cache",
    """the same Linear twice inside one autocast region: the cast of the leaf weight is cached,
    both uses share one cast node; with cache_enabled=False there are two cast nodes but still
    one AccumulateGrad per leaf""",
)
def p70(c):
    c.dtype = torch.float32
    m = c.watch(c.model(l=c.lin(4, 4)))
    x = c.tensor(3, 4)
    for cache in (True, False):
        with torch.autocast(c.dev.type, dtype=torch.bfloat16, cache_enabled=cache):
            y = m.l(torch.tanh(m.l(x)))
        loss = sq(y.float())
        seen, st = set(), [loss.grad_fn]
        casts = 0
        while st:
            fn = st.pop()
            if fn is None or fn in seen:
                continue
            seen.add(fn)
            nxt = [f for f, _ in fn.next_functions]
            if fn.name().startswith("ToCopyBackward") and any(
                f is not None and "AccumulateGrad" in f.name() for f in nxt
            ):
                casts += 1
            st += nxt
        loss.backward()
        c.mark("cast_nodes:%d" % casts)


@program(
    "P71_autocast_ckpt",
    """reentrant and non-reentrant checkpoint of tanh o l1 inside bf16 autocast, backward outside
    autocast: the recompute re-enters autocast with the forward's settings (marks compare
    dtypes)""",
)
def p71(c):
    c.dtype = torch.float32
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4, name="x", rg=True)
    for lab, re in (("R", True), ("N", False)):
        dts = []

        def body(t):
            h = m.l1(t)
            dts.append(str(h.dtype).replace("torch.", ""))
            return torch.tanh(h)

        with torch.autocast(c.dev.type, dtype=torch.bfloat16):
            y = m.l2(c.ckpt(lab, body, x, reentrant=re))
        sq(y.float()).backward()
        c.mark("%s:%s" % (lab, ",".join(dts)))
