"""DeepSpeed that saves and loads a checkpoint in the middle, with a schedule and two groups."""

import shutil
import sys
import tempfile

import engines
import torch
import torch.distributed as dist
from engines import deepspeed
from job import batch, begin, finish
from models import Mlp

ARGUMENTS = ("1", "2", "3")

rank, _ = begin()
torch.manual_seed(7)
deepspeed.init_distributed("gloo")
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder, src=0)
model = Mlp()
groups = [
    {"params": list(model.l1.parameters()), "lr": 1e-2},
    {"params": list(model.l2.parameters()), "lr": 1e-3},
]
optimizer = torch.optim.Adam(groups)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=optimizer,
    lr_scheduler=schedule,
    config=engines.configuration(int(sys.argv[1]), gradient_clipping=1.0),
)
for step in range(4):
    engine.backward(engine(batch(step, rank)))
    engine.step()
    if step == 1:
        engine.save_checkpoint(folder[0], tag="middle")
    if step == 2:
        engine.load_checkpoint(folder[0], tag="middle")
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
finish(engine.module)
