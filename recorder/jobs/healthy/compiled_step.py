"""A compiled optimizer step and a compiled loss, in DDP."""

import torch
from job import batch, begin, finish, need
from models import Net
from torch.nn.parallel import DistributedDataParallel

need(torch_version=(2, 7))
rank, _ = begin(240)
torch.manual_seed(7)
model = DistributedDataParallel(Net(), bucket_cap_mb=2 / 1024)
optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-2))
loss_of = torch.compile(lambda output: output.pow(2).mean(), backend="aot_eager")
step_of = torch.compile(optimizer.step, backend="aot_eager")
for step in range(4):
    optimizer.zero_grad()
    loss_of(model(batch(step, rank, width=8))).backward()
    step_of()
finish(model)
