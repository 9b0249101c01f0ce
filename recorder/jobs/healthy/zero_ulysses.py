"""DeepSpeed's sequence parallelism: attention heads are exchanged for tokens and back."""

import sys

import engines
import torch
import torch.distributed as dist
from deepspeed.sequence.layer import DistributedAttention
from engines import deepspeed
from job import batch, begin, finish
from torch import nn

ARGUMENTS = ("0", "1", "2", "3")
HEADS, SIZE = 2, 4


class Attention(nn.Module):
    """Tokens of this rank in, a loss out."""

    def __init__(self, group):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 3 * HEADS * SIZE), nn.Linear(HEADS * SIZE, 4)
        self.attention = DistributedAttention(self._local, group, scatter_idx=2, gather_idx=0)

    @staticmethod
    def _local(q, k, v, *_):
        q, k, v = (part.permute(1, 2, 0, 3) for part in (q, k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return mixed.permute(2, 0, 1, 3).contiguous()

    def forward(self, x):
        q, k, v = self.qkv(x).view(len(x), 1, 3, HEADS, SIZE).unbind(2)
        mixed = self.attention(q, k, v, 1)
        return self.out(mixed.reshape(len(x), HEADS * SIZE)).pow(2).mean()


rank, world = begin()
torch.manual_seed(7)
deepspeed.init_distributed("gloo")
engine = engines.engine_of(Attention(dist.new_group(range(world))), int(sys.argv[1]))
for step in range(3):
    engine.backward(engine(batch(step, rank, rows=4, width=8)))
    engine.step()
finish(engine.module)
