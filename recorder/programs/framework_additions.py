"""Backwards that DDP and FSDP2 leave for their caller to finish; `since` is the first release."""

import contextlib

import torch
from .autograd_additions import refused
from .frameworks import process_group
from .registry import program, sq
from torch import nn


class Net(nn.Module):
    """Two layers."""

    def __init__(self, c):
        super().__init__()
        self.l1, self.l2 = c.lin(4, 5), c.lin(5, 2)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


def reduced_in(c, ddp):
    """A communication hook that writes down its bucket and gives it back."""

    def hook(state, bucket):
        names = [c.names.get(id(parameter)) for parameter in bucket.parameters()]
        c.emit("bucket.ready", index=bucket.index(), params=names)
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, hook)


@program(
    "P110_ddp_manual_finalization",
    """DDP with require_manual_backward_finalization: no callback finishes the backward;
    finalize_backward() raises before the backward and while buckets are missing, and afterwards
    writes the buckets to gradients that were dropped meanwhile; a forward before it raises""",
    nodes=False,
    needs="dist",
    since=(2, 15),
)
def ddp_manual_finalization(c):
    from torch.nn.parallel import DistributedDataParallel

    with process_group():
        net = c.watch(Net(c))
        itemsize = torch.empty(0, dtype=c.dtype).element_size()
        ddp = DistributedDataParallel(net, bucket_cap_mb=12 * itemsize / (1 << 20))
        reduced_in(c, ddp)
        ddp.require_manual_backward_finalization = True
        x = c.tensor(3, 4)
        for _ in range(2):
            loss = sq(ddp(x))
            c.mark("after_backward:%s" % ddp.should_finalize_after_backward)
            refused(c, ddp.finalize_backward)
            handle = net.l2.weight.register_post_accumulate_grad_hook(
                lambda leaf: refused(c, ddp.finalize_backward)
            )
            loss.backward()
            handle.remove()
            refused(c, lambda: ddp(x))
            for parameter in net.parameters():
                parameter.grad = None
            ddp.finalize_backward()
            c.mark("has_all:%s" % all(p.grad is not None for p in net.parameters()))
        del ddp


@contextlib.contextmanager
def watched_units(c):
    """Marks of FSDP2's hooks, as P77_fsdp2 has them."""
    import torch.distributed.fsdp._fully_shard._fsdp_param_group as groups
    import torch.distributed.fsdp._fully_shard._fsdp_state as states

    kept = []

    def replace(owner, name, make):
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, make(getattr(owner, name)))

    def name_of(group):
        return group._module_fqn or "root"

    def pre_backward(original):
        def observed(group, *arguments):
            if group._training_state != groups.TrainingState.PRE_BACKWARD:
                c.mark("pre_bwd:" + name_of(group))
            return original(group, *arguments)

        return observed

    def post_backward(original):
        def observed(group, *arguments):
            c.mark("post_bwd:" + name_of(group))
            return original(group, *arguments)

        return observed

    def final(original):
        def observed(state):
            c.mark("final+")
            original(state)
            c.mark("final-")

        return observed

    def register(original):
        def observed(state):
            was_queued = state._state_ctx.post_backward_final_callback_queued
            original(state)
            if not was_queued and state._state_ctx.post_backward_final_callback_queued:
                c.mark("cb_queued")

        return observed

    replace(groups.FSDPParamGroup, "pre_backward", pre_backward)
    replace(groups.FSDPParamGroup, "post_backward", post_backward)
    replace(states.FSDPState, "_root_post_backward_final_callback", final)
    replace(states.FSDPState, "_register_root_post_backward_final_callback", register)
    try:
        yield
    finally:
        for owner, name, original in reversed(kept):
            setattr(owner, name, original)


class ScaledNet(Net):
    """Two layers and a parameter of the root."""

    def __init__(self, c):
        super().__init__(c)
        self.scale = nn.Parameter(torch.ones(1, dtype=c.dtype, device=c.dev))

    def forward(self, x):
        return super().forward(x) * self.scale


def sharded(c):
    """The net as three units."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(c.dev.type, (1,))
    net = ScaledNet(c)
    for module in (net.l1, net.l2, net):
        fully_shard(module, mesh=mesh)
    return net


@program(
    "P111_fsdp2_manual_finalization",
    """fully_shard with set_manual_backward_finalization: the final callback runs, but leaves the
    post-backward of units whose inputs have no gradient to finalize_backward(), which takes the
    units in reverse""",
    nodes=False,
    needs="dist",
    since=(2, 15),
)
def fsdp2_manual_finalization(c):
    with process_group(), watched_units(c):
        net = sharded(c)
        net.set_manual_backward_finalization(True)
        x = c.tensor(3, 4)
        for _ in range(2):
            sq(net(x)).backward()
            c.mark("finalize")
            net.finalize_backward()


@program(
    "P112_fsdp2_reset_iter_state",
    """fully_shard and an exception in backward: without reset_iter_state() the next backward
    queues no final callback, and the units that rely on it get no post-backward; after it all is
    as at the start""",
    nodes=False,
    needs="dist",
    since=(2, 13),
)
def fsdp2_reset_iter_state(c):
    def failing(grad):
        raise ValueError("injected")

    with process_group(), watched_units(c):
        x = c.tensor(3, 4)
        for resets in (False, True):
            net = sharded(c)
            out = net(x)
            out.register_hook(failing)
            refused(c, lambda: sq(out).backward())
            if resets:
                net.reset_iter_state()
            c.mark("again")
            sq(net(x)).backward()
