"""FSDP2 for small jobs on the CPU."""

import torch.distributed as dist
from job import need
from torch.distributed.device_mesh import init_device_mesh

need(torch_version=(2, 7))  # before, FSDP2 made CUDA streams whatever the device was

from torch.distributed.fsdp import fully_shard


def shard(net, mesh=None, **options):
    """Each block and the rest of a Net become units; the same module again."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),)) if mesh is None else mesh
    for block in net.blocks:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)
