"""DDP that saves and loads distributed checkpoints, at once and from a thread with its own group."""

import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from job import batch, begin, finish
from models import Net
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel

ARGUMENTS = ("save", "async_save")

rank, _ = begin()
torch.manual_seed(7)
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder, src=0)
model = DistributedDataParallel(Net())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
save = getattr(dcp, sys.argv[1])
for step in range(3):
    optimizer.zero_grad()
    model(batch(step, rank, width=8)).pow(2).mean().backward()
    optimizer.step()
    weights, moments = get_state_dict(model, optimizer)
    saved = save({"model": weights, "optimizer": moments}, checkpoint_id=f"{folder[0]}/{step}")
    if sys.argv[1] == "async_save":
        saved.result()
weights, moments = get_state_dict(model, optimizer)
state = {"model": weights, "optimizer": moments}
dcp.load(state, checkpoint_id=f"{folder[0]}/1")
set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
optimizer.zero_grad()
model(batch(9, rank, width=8)).pow(2).mean().backward()
optimizer.step()
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
finish(model)
