"""DDP whose caller finalizes the backward: after it or, where DDP allows that, in a callback."""

import sys

import torch
from job import batch, begin, finish, need
from models import Net
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("after", "callback")



def finalize_at_end(_):
    """A hook that queues it as a final callback of the backward."""
    torch.autograd.Variable._execution_engine.queue_callback(model.finalize_backward)


need(torch_version=(2, 15))
rank, _ = begin()
torch.manual_seed(7)
net = Net()
model = DistributedDataParallel(
    net, bucket_cap_mb=2 / 1024, lazy_bucket_allocation=True, forward_sync_buffers=False
)
model.require_manual_backward_finalization = True
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(4):
    optimizer.zero_grad()
    output = model(batch(step, rank, width=8))
    is_inside = sys.argv[1] == "callback" and not model.should_finalize_after_backward
    if is_inside:
        output.register_hook(finalize_at_end)
    output.pow(2).mean().backward()
    if not is_inside:
        model.finalize_backward()
    optimizer.step()
finish(model)
