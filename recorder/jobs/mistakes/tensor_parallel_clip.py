"""DeepSpeed #1801 (BLOOM-176B): clipping leaves out replicated norms on every rank but the first.

The copies of the norm layer drift apart. (TrainCheck: deepspeed-1801.) Needs --numbers.
"""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net

EXPECT = r"(norm.*differ|diverge|clip)"
RECORDER = "--numbers"

rank, world = begin()
torch.manual_seed(7)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for step in range(4):
    optimizer.zero_grad()
    (50 * model(batch(step, 0, width=8)).pow(2).mean()).backward()
    for param in model.parameters():
        dist.all_reduce(param.grad)
    clipped = [p for n, p in model.named_parameters() if rank == 0 or not n.startswith("norm")]
    torch.nn.utils.clip_grad_norm_(clipped, 0.1)
    optimizer.step()
finish(model)
