"""DeepSpeed over checkpoints whose inputs wait on the host, by PyTorch's hooks or its own."""

import contextlib
import importlib
import sys

import engines
import torch
from job import batch, begin, finish
from models import Checkpointed
from torch.autograd.graph import save_on_cpu

ARGUMENTS = ("1 torch", "2 torch", "3 torch", "2 deepspeed", "3 deepspeed")
OFFLOAD = "deepspeed.runtime.activation_checkpointing.offload_activations"


def offload():
    """The context of a forward; releases before 0.19 do not have one of their own."""
    if "deepspeed" not in sys.argv:
        return save_on_cpu()
    try:
        return importlib.import_module(OFFLOAD).CheckpointHiddenStatesOffload(
            use_pin_memory=False, use_streams=False, min_offload_bytes=0
        )
    except ModuleNotFoundError:
        return contextlib.nullcontext()


rank, _ = begin()
torch.manual_seed(7)
engine = engines.engine_of(Checkpointed(reentrant=False), int(sys.argv[1]))
for step in range(3):
    with offload():
        loss = engine(batch(step, rank))
    engine.backward(loss)
    engine.step()
finish(engine.module)
