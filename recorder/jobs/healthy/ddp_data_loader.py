"""DDP fed by a DataLoader with worker processes and a DistributedSampler; metrics on rank 0."""

import torch
import torch.distributed as dist
from job import batch, begin, finish
from models import Net
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

rank, world = begin()
torch.manual_seed(7)
data = TensorDataset(batch(0, rows=16, width=8), batch(1, rows=16))
sampler = DistributedSampler(data, shuffle=True, seed=3)
loader = DataLoader(data, batch_size=2, sampler=sampler, num_workers=2, persistent_workers=True)
model = DistributedDataParallel(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, wanted in loader:
        optimizer.zero_grad()
        (model(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    if rank == 0:
        with torch.no_grad():
            best = [model.module(batch(2, rows=4, width=8)).pow(2).mean().item()]
    else:
        best = [None]
    dist.broadcast_object_list(best, src=0)
    dist.barrier()
finish(model)
