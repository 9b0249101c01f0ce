"""DDP with the post-local-SGD hook: global reduction first, then local steps and averages."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hooks
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

rank, world = begin()
torch.manual_seed(7)
model = DistributedDataParallel(Net())
own = [dist.new_group([number]) for number in range(world)][rank]
state = hooks.PostLocalSGDState(process_group=None, subgroup=own, start_localSGD_iter=2)
model.register_comm_hook(state, hooks.post_localSGD_hook)
averager = PeriodicModelAverager(period=2, warmup_steps=2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    averager.average_parameters(model.parameters())
finish(model)
