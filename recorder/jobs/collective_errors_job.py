"""Each collective into each kind of tensor: the error, the version counter, the gradient.

Usage: torchrun --nproc_per_node 2 collective_errors_job.py OUT
Writes {"operation kind": outcome} to OUT_r<rank>.json; all ranks do the same, so none waits.
"""

import itertools
import json
import re
import sys

import torch
import torch.distributed as dist
from job import begin

tags = itertools.count()
sends = []  # as long as their tensors may be read


def ones():
    return torch.ones(4)


def exchange(t):
    """Each rank receives; a send whose receive was refused is left alone."""
    peer, tag = 1 - dist.get_rank(), next(tags)
    sends.append(dist.isend(ones(), peer, tag=tag))
    dist.irecv(t, peer, tag=tag).wait()


def in_c10d_functional(t):
    name = dist.group.WORLD.group_name
    return torch.ops._c10d_functional.wait_tensor(
        torch.ops._c10d_functional.all_reduce_(t, "sum", name)
    )


def if_root(value):
    return value if dist.get_rank() == 0 else None


OPERATIONS = {
    "all_reduce": dist.all_reduce,
    "all_reduce async": lambda t: dist.all_reduce(t, async_op=True).wait(),
    "all_reduce_coalesced": lambda t: dist.all_reduce_coalesced([t, ones()]),
    "broadcast": lambda t: dist.broadcast(t, 0),
    "reduce": lambda t: dist.reduce(t, 0),
    "all_gather": lambda t: dist.all_gather([t, ones()], ones() * 7),
    "all_gather_into_tensor": lambda t: dist.all_gather_into_tensor(t, torch.full((2,), 7.0)),
    "reduce_scatter": lambda t: dist.reduce_scatter(t, [ones(), ones()]),
    "reduce_scatter_tensor": lambda t: dist.reduce_scatter_tensor(t, torch.full((8,), 7.0)),
    "all_to_all": lambda t: dist.all_to_all([t, ones()], [ones(), ones()]),
    "all_to_all_single": lambda t: dist.all_to_all_single(t, ones() * 7),
    "gather": lambda t: dist.gather(ones(), if_root([t, ones()]), 0),
    "scatter": lambda t: dist.scatter(t, if_root([ones(), ones()]), 0),
    "send recv": exchange,
    "functional": in_c10d_functional,
}


def plain():
    return ones(), None


def saved():
    weight, x = torch.ones(4, requires_grad=True), ones()
    return x, ((weight * x).sum(), weight)


def saved_view():
    weight, flat = torch.ones(4, requires_grad=True), torch.ones(8)
    return flat[:4], ((weight * flat[:4]).sum(), weight)


def leaf():
    return torch.ones(4, requires_grad=True), None


def leaf_data():
    return torch.nn.Parameter(ones()).data, None


def leaf_detached_saved():
    weight, param = torch.ones(4, requires_grad=True), torch.nn.Parameter(ones())
    return param.detach(), ((weight * param).sum(), weight)


def view_of_leaf():
    return torch.ones(8, requires_grad=True)[:4], None


def view_made_without_grad():
    flat = torch.ones(8, requires_grad=True)
    with torch.no_grad():
        return flat[:4], None


def chunk_made_without_grad():
    flat = torch.ones(8, requires_grad=True)
    with torch.no_grad():
        return flat.split(4)[0], None


def chunk_of_plain():
    return torch.ones(8).split(4)[0], None


def result():
    weight = torch.ones(4, requires_grad=True)
    y = weight * 2
    return y, (y.sum(), weight)


def strided():
    return torch.ones(4, 2)[:, 0], None


def expanded():
    return torch.ones(1).expand(4), None


def of_inference():
    with torch.inference_mode():
        return torch.ones(4), None


def integers():
    return torch.ones(4, dtype=torch.int64), None


def too_small():
    return torch.ones(3), None


KINDS = (plain, saved, saved_view, leaf, leaf_data, leaf_detached_saved, view_of_leaf,
         view_made_without_grad, chunk_made_without_grad, chunk_of_plain, result, strided,
         expanded, of_inference, integers)  # fmt: skip
# An error on one rank alone leaves the other waiting.
ON_ONE_RANK = ("gather expanded", "gather integers", "scatter expanded", "scatter integers",
               "send recv expanded", "send recv integers")  # fmt: skip
SMALL = ("all_gather_into_tensor", "all_to_all_single", "reduce_scatter_tensor")
MODES = {"": torch.enable_grad, " no_grad": torch.no_grad, " inference": torch.inference_mode}


def outcome(operation, kind, mode):
    """What a user would see."""
    seen = {}
    tensor, loss = kind()
    before = None if tensor.is_inference() else tensor._version
    try:
        with mode():
            operation(tensor)
        if before is not None:
            seen["versions"] = tensor._version - before
        if loss is not None:
            loss[0].backward()
            seen["grad"] = loss[1].grad.tolist()
    except Exception as error:
        message = re.sub(r"\[F[^\]]*\]", "", str(error).splitlines()[0])  # C++'s time and thread
        seen["error"] = f"{type(error).__name__}: {message}"
        seen["context"] = repr(error.__context__)
    seen["value"] = tensor.detach().tolist()
    seen["requires_grad"] = tensor.requires_grad
    return seen


def main():
    rank, _ = begin(timeout_s=20)
    found = {}
    for (word, operation), (suffix, mode) in itertools.product(OPERATIONS.items(), MODES.items()):
        kinds = (*KINDS, too_small) if word in SMALL else KINDS
        for kind in kinds:
            if f"{word} {kind.__name__}" not in ON_ONE_RANK:
                found[f"{word} {kind.__name__}{suffix}"] = outcome(operation, kind, mode)
    with open(f"{sys.argv[1]}_r{rank}.json", "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
