"""What all jobs share: the process group, data, what is missing and how a job ends."""

import datetime
import hashlib
import importlib.util
import os
import sys

import torch
import torch.distributed as dist

SKIPPED = 77


def begin(timeout_s=60):
    """Joins the gloo group that the launcher's variables describe; rank and world size."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout_s))
    return dist.get_rank(), dist.get_world_size()


def batch(step, rank=0, rows=2, width=4):
    """The inputs of one step: the same in every run."""
    generator = torch.Generator().manual_seed(1000 + 17 * step + rank)
    return torch.randn(rows, width, generator=generator)


def need(*modules, torch_version=(2, 4)):
    """Ends with exit code 77 and one line where a package or a version is missing."""
    missing = [name for name in modules if not _is_there(name)]
    if missing:
        _skip(f"{', '.join(missing)} not installed")
    version = tuple(int(word) for word in torch.__version__.split(".")[:2])
    if version < torch_version:
        _skip(f"PyTorch {'.'.join(map(str, torch_version))} needed, this is {torch.__version__}")


def _is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # nor is its parent
        return False


def _skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def finish(*parts):
    """Prints a hash of what this rank holds of the parameters, and leaves the process group.

    Two runs of a job that ended in the same numbers print the same line.
    """
    digest = hashlib.sha256()
    for part in parts:
        params = part.parameters() if isinstance(part, torch.nn.Module) else part
        for param in params:
            digest.update(_bytes_of(param))
    print(f"BITS {digest.hexdigest()}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


def _bytes_of(param):
    """The local shard of a DTensor or of a ZeRO-3 parameter; else the whole tensor."""
    local = getattr(param, "ds_tensor", param).detach()
    if local is not param and hasattr(param, "ds_numel"):
        left = param.ds_numel - dist.get_rank() * local.numel()
        local = local.view(-1)[: max(0, left)]  # what follows is padding, which holds anything
    if hasattr(local, "to_local"):
        local = local.to_local()
    return local.contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes()
