"""DeepSpeed engines for small jobs on gloo, without a compiler.

Import this module before any other package that imports DeepSpeed.
"""

import importlib
import logging
import os

from job import need

need("deepspeed")
os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch

logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
# The shared-memory operator would be compiled for minutes. By name: the package has a `torch` too.
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def zero(stage, **more):
    """The section zero_optimization, with bounds so small that a small model meets them."""
    section = {"stage": stage, "reduce_bucket_size": 400, "allgather_bucket_size": 400}
    section.update(overlap_comm=False, contiguous_gradients=True)
    if stage == 3:
        section.update(
            stage3_param_persistence_threshold=0,
            stage3_prefetch_bucket_size=200,
            stage3_max_reuse_distance=0,
            stage3_max_live_parameters=2000,
        )
    return {**section, **more}


def configuration(stage, accumulation=1, **more):
    """A configuration; words in `more` replace sections."""
    return {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": accumulation,
        "zero_optimization": zero(stage),
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
        **more,
    }


def engine_of(model, stage, accumulation=1, lr=1e-2, **more):
    """An engine with PyTorch's own Adam over what is trainable."""
    params = [param for param in model.parameters() if param.requires_grad]
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(params, lr=lr) if params else None,
        model_parameters=params or None,
        config=configuration(stage, accumulation, **more),
    )
    return engine
