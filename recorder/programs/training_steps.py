"""Steps of an optimizer: between backwards, inside one, and with state."""

import torch
from .registry import program, sq


@program(
    "P96_zero_grad_between",
    """GAS-like sequence: backward, backward (accumulates in place), grads set to None, backward
    (steals again): marks show whether the gradient tensor object survived""",
)
def p96(c):
    m = c.watch(c.model(l=c.lin(4, 3, bias=False)))
    x = c.tensor(2, 4)
    sq(m.l(x)).backward()
    g0, ptr = m.l.weight.grad, m.l.weight.grad.data_ptr()
    sq(m.l(x)).backward()
    c.mark("same_object:%s" % (m.l.weight.grad is g0 and m.l.weight.grad.data_ptr() == ptr))
    for p in m.parameters():
        p.grad = None
    c.mark("none_after_zero:%s" % (m.l.weight.grad is None))
    sq(m.l(x)).backward()
    c.mark("same_object_again:%s" % (m.l.weight.grad is g0))


@program(
    "P97_step_in_backward",
    """optimizer fused into backward: each parameter's post-accumulate hook (registered after the
    observer) does its own SGD step and sets .grad to None; a second iteration starts from the
    new values and no .grad survives""",
)
def p97(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    x = c.tensor(3, 4)
    opts = {}

    def hook(q, n):
        opt = opts[n]
        c.emit("opt.step", params=[n], lr=opt.param_groups[0]["lr"])
        with torch.no_grad():
            opt.step()
        c.dump("grad", n + "@step", q.grad)
        opt.zero_grad(set_to_none=True)
        c.emit("opt.zero_grad", params=[n])
        c.mark("step:" + n)

    for n, p in m.named_parameters():
        opts[n] = torch.optim.SGD([p], lr=0.1)
        p.register_post_accumulate_grad_hook(lambda q, n=n: hook(q, n))
    for it in range(2):
        sq(m.l2(torch.tanh(m.l1(x)))).backward()
        c.mark("grads_left:%d" % sum(p.grad is not None for p in m.parameters()))
    for n, p in m.named_parameters():
        c.dump("param_final", n, p)


@program(
    "P98_adam_two_micro_batches",
    """GAS 2 with Adam: two backwards (losses divided by two), step, zero_grad, twice; optimizer
    state after each step is dumped; hook order is the same in each backward""",
)
def p98(c):
    m = c.watch(c.model(l=c.lin(4, 3)))
    opt = torch.optim.Adam(m.parameters(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, foreach=False)
    xs = [c.tensor(2, 4), c.tensor(2, 4)]
    for it in range(2):
        for x in xs:
            (sq(torch.tanh(m.l(x))) / 2).backward()
        for n, p in m.named_parameters():
            c.dump("grad", "%s@step%d" % (n, it), p.grad)
        c.emit("opt.step", lr=0.01)
        opt.step()
        for n, p in m.named_parameters():
            st = opt.state[p]
            c.emit("opt.state", param=n, step=int(st["step"]), tensors=["exp_avg", "exp_avg_sq"])
            for k in ("exp_avg", "exp_avg_sq"):
                c.dump("opt_state", "%s@step%d:%s" % (n, it, k), st[k])
            c.dump("param_final" if it else "param_step0", n, p)
        opt.zero_grad(set_to_none=True)
        c.emit("opt.zero_grad")
        c.mark("step:%d" % it)
