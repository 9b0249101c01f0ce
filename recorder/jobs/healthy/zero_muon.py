"""DeepSpeed with Muon for the matrices and Adam for everything else."""

import sys

import engines
import torch
from engines import deepspeed
from job import batch, begin, finish, need
from models import Net

ARGUMENTS = ("1", "2", "3")

need("deepspeed.runtime.zero.muon.muon_optimizer")
torch._dynamo.config.disable = True  # Muon's update would be compiled

from deepspeed.runtime.zero.muon.muon_optimizer import MuonWithAuxAdam

rank, _ = begin()
torch.manual_seed(7)
stage, net = int(sys.argv[1]), Net()
groups = []
for is_matrix in (True, False):
    params = [param for param in net.parameters() if (param.dim() == 2) is is_matrix]
    for param in params:
        param.use_muon = is_matrix
    own = {"momentum": 0.95} if is_matrix else {"betas": (0.9, 0.95), "eps": 1e-10}
    groups.append({"params": params, "use_muon": is_matrix, "lr": 1e-2, "weight_decay": 0.0, **own})
section = engines.zero(stage, reduce_scatter=False)
config = engines.configuration(stage, accumulation=2, zero_optimization=section)
engine, *_ = deepspeed.initialize(model=net, optimizer=MuonWithAuxAdam(groups), config=config)
for micro in range(6):
    engine.backward(engine(batch(micro, rank, width=8)).pow(2).mean())
    engine.step()
finish(engine.module)
