"""What ZeRO-3, DDP and FSDP2 do to the order."""

import contextlib
import tempfile

import torch
from .probes import graph_task
from .registry import program, sq
from torch import nn


class PreBwd(torch.autograd.Function):
    """Identity on a module's output whose backward marks 'module backward starts'."""

    @staticmethod
    def forward(x, c, label):
        return x.detach()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.c, ctx.label = inputs[1], inputs[2]

    @staticmethod
    def backward(ctx, g):
        ctx.c.emit("mark", label="pre_" + ctx.label)
        return g, None, None


class PostBwd(PreBwd):
    """Identity on a module's input whose backward marks 'module backward finished'."""

    @staticmethod
    def backward(ctx, g):
        ctx.c.emit("mark", label="post_" + ctx.label)
        return g, None, None


def z3_wrap(c, mod, label):
    mod.register_forward_pre_hook(lambda m, a: tuple(PostBwd.apply(t, c, label) for t in a))
    mod.register_forward_hook(lambda m, a, o: PreBwd.apply(o, c, label))


@program(
    "P72_zero3_boundaries",
    """ZeRO-3's identity Functions around every Linear (post marker on the input, pre marker on the
    output): l1 -> tanh -> l2, x without grad: l1's post marker never fires (no input needs
    grad)""",
)
def p72(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 2)))
    z3_wrap(c, m.l1, "l1")
    z3_wrap(c, m.l2, "l2")
    sq(m.l2(torch.tanh(m.l1(c.tensor(3, 4))))).backward()


@program(
    "P73_zero3_boundaries_ckpt",
    """the same markers with l1 -> tanh -> l2 in a checkpoint, reentrant then non-reentrant, x
    requires grad, head l3 outside: in the non-reentrant case the markers belong to the original
    graph and the recompute (stopped inside l2) happens between pre_l2 and l2's parameters""",
)
def p73(c):
    m = c.watch(c.model(l1=c.lin(4, 5), l2=c.lin(5, 4), l3=c.lin(4, 2)))
    for n in ("l1", "l2", "l3"):
        z3_wrap(c, getattr(m, n), n)
    x = c.tensor(3, 4, name="x", rg=True)
    for lab, re in (("R", True), ("N", False)):
        h = c.ckpt(lab, lambda t: m.l2(torch.tanh(m.l1(t))), x, reentrant=re)
        sq(m.l3(h)).backward()


@program(
    "P74_epilogue_timing",
    """the ZeRO question in pure PyTorch: an output hook queues one 'epilogue' callback at the
    start of backward; l1 and l2 sit in two reentrant checkpoints, l3 outside; a counter-based
    epilogue would run after l3 (only its two leaves are visible to _will_engine_execute_node
    then), the callback runs after every nested task""",
)
def p74(c):
    m = c.model(l1=c.lin(4, 4), l2=c.lin(4, 4), l3=c.lin(4, 2))

    def visible():
        n = 0
        for p in m.parameters():
            with torch.enable_grad():
                fn = torch.autograd.graph._get_grad_fn_or_grad_acc(p)
            n += bool(torch._C._will_engine_execute_node(fn))
        c.mark("visible_leaves:%d" % n)

    seen = set()
    for p in m.parameters():

        def first(q):
            if graph_task() not in seen:
                seen.add(graph_task())
                visible()

        p.register_post_accumulate_grad_hook(first)
    c.watch(m)
    x = c.tensor(3, 4, name="x", rg=True)
    h = c.ckpt("A", lambda t: torch.tanh(m.l1(t)), x, reentrant=True)
    h = c.ckpt("B", lambda t: torch.tanh(m.l2(t)), h, reentrant=True)
    loss = sq(m.l3(h))
    c.hook(loss, "loss", lambda g: c.queue("epilogue"))
    loss.backward()


@contextlib.contextmanager
def process_group(backend="gloo"):
    import torch.distributed as dist

    d = tempfile.mkdtemp()
    dist.init_process_group(backend, init_method="file://%s/store" % d, rank=0, world_size=1)
    try:
        yield dist
    finally:
        dist.destroy_process_group()


@program(
    "P75_ddp",
    """DistributedDataParallel, world size 1, gloo, l1 -> tanh -> l2, bucket cap ~60 bytes:
    iteration 1 uses one bucket (reduced when the last parameter is ready); buckets are then
    rebuilt in gradient-ready order, so iteration 2 reduces several buckets in order while
    backward goes on; each bucket event comes after the post-accumulate hook of its last
    parameter""",
    nodes=False,
    needs="dist",
)
def p75(c):
    from torch.nn.parallel import DistributedDataParallel as DDP

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.l1, self.l2 = c.lin(4, 5), c.lin(5, 2)

        def forward(self, t):
            return self.l2(torch.tanh(self.l1(t)))

    with process_group("gloo" if c.dev.type == "cpu" else "nccl"):
        net = c.watch(Net())
        itemsize = torch.empty(0, dtype=c.dtype).element_size()
        ddp = DDP(net, bucket_cap_mb=(12 * itemsize) / (1024 * 1024))

        def comm(state, bucket):
            names = [c.names.get(id(p)) for p in bucket.parameters()]
            c.emit(
                "bucket.ready",
                index=bucket.index(),
                params=names,
                bytes=bucket.buffer().numel() * itemsize,
                last=bool(bucket.is_last()),
            )
            f = torch.futures.Future()
            f.set_result(bucket.buffer())
            return f

        ddp.register_comm_hook(None, comm)
        x = c.tensor(3, 4)
        for _ in range(2):
            sq(ddp(x)).backward()
            c.mark("final_after_backward:%s" % all(p.grad is not None for p in net.parameters()))
        del ddp


@program(
    "P76_ddp_find_unused",
    """DDP with find_unused_parameters=True and an unused layer l_unused: unused parameters are
    marked ready when the first hook fires; one bucket, reduced when the last used parameter is
    ready; the unused grads stay None""",
    nodes=False,
    needs="dist",
)
def p76(c):
    from torch.nn.parallel import DistributedDataParallel as DDP

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.l1, self.l_unused, self.l2 = c.lin(4, 5), c.lin(2, 2), c.lin(5, 2)

        def forward(self, t):
            return self.l2(torch.tanh(self.l1(t)))

    with process_group("gloo" if c.dev.type == "cpu" else "nccl"):
        net = c.watch(Net())
        ddp = DDP(net, find_unused_parameters=True)

        def comm(state, bucket):
            c.emit(
                "bucket.ready",
                index=bucket.index(),
                params=[c.names.get(id(p)) for p in bucket.parameters()],
            )
            f = torch.futures.Future()
            f.set_result(bucket.buffer())
            return f

        ddp.register_comm_hook(None, comm)
        sq(ddp(c.tensor(3, 4))).backward()
        c.mark("unused_grad:%s" % net.l_unused.weight.grad)
        del ddp


@program(
    "P77_fsdp2",
    """fully_shard on l1, l2 and the root, world size 1: pre-backward comes from output tensor
    hooks, post-backward from an identity Function on the inputs (absent for l1: its input needs
    no grad), and the root's final callback, queued at the first pre-backward, runs the post-
    backward of the root and of l1 as a catch-up (needs a PyTorch whose FSDP2 supports the
    device)""",
    nodes=False,
    needs="dist",
)
def p77(c):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    import torch.distributed.fsdp._fully_shard._fsdp_state as st
    import torch.distributed.fsdp._fully_shard._fsdp_param_group as pg

    class Net(nn.Module):

        def __init__(self):
            super().__init__()
            self.l1, self.l2 = c.lin(4, 5), c.lin(5, 2)
            self.scale = nn.Parameter(torch.ones(1, dtype=c.dtype, device=c.dev))

        def forward(self, t):
            return self.l2(torch.tanh(self.l1(t))) * self.scale

    saved = []

    def patch(cls, name, fn):
        saved.append((cls, name, getattr(cls, name)))
        setattr(cls, name, fn(getattr(cls, name)))

    def fqn(group):
        return group._module_fqn or "root"

    with process_group("gloo" if c.dev.type == "cpu" else "nccl"):
        try:

            def pre(orig):
                def f(self, *a, **k):
                    first = self._training_state != pg.TrainingState.PRE_BACKWARD
                    if first:
                        c.mark("pre_bwd:" + fqn(self))
                    return orig(self, *a, **k)

                return f

            def post(orig):
                def f(self, *a, **k):
                    c.mark("post_bwd:" + fqn(self))
                    return orig(self, *a, **k)

                return f

            def final(orig):
                def f(self, *a, **k):
                    c.mark("final+")
                    r = orig(self, *a, **k)
                    c.mark("final-")
                    return r

                return f

            def reg(orig):
                def f(self, *a, **k):
                    was = self._state_ctx.post_backward_final_callback_queued
                    r = orig(self, *a, **k)
                    if not was and self._state_ctx.post_backward_final_callback_queued:
                        c.mark("cb_queued")
                    return r

                return f

            patch(pg.FSDPParamGroup, "pre_backward", pre)
            patch(pg.FSDPParamGroup, "post_backward", post)
            patch(st.FSDPState, "_root_post_backward_final_callback", final)
            patch(st.FSDPState, "_register_root_post_backward_final_callback", reg)
            mesh = init_device_mesh(c.dev.type, (1,))
            net = Net()
            fully_shard(net.l1, mesh=mesh)
            fully_shard(net.l2, mesh=mesh)
            fully_shard(net, mesh=mesh)
            loss = sq(net(c.tensor(3, 4)))
            loss.backward()
        finally:
            for cls, name, fn in saved:
                setattr(cls, name, fn)
