"""What all jobs share: the process group, data and where results go."""

import datetime
import os

import torch
import torch.distributed as dist


def begin(timeout_s=60):
    """Joins the gloo group that the launcher's variables describe; rank and world size."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout_s))
    return dist.get_rank(), dist.get_world_size()


def batch(step, rank=0, rows=2):
    """The inputs of one step: the same in every run."""
    generator = torch.Generator().manual_seed(1000 + 17 * step + rank)
    return torch.randn(rows, 4, generator=generator)
