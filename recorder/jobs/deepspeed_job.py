"""DeepSpeed on gloo, without a compiler: no CPU Adam, no shared-memory operator.

Run: torchrun --nproc_per_node 2 -m zeroproof_recorder run deepspeed_job.py SCENARIO STAGE
"""

import contextlib
import importlib
import logging
import os
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import models
import torch
from job import batch, begin

logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
# The shared-memory operator would want a C++ compiler. By name: the package has a `torch` too.
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def configuration(stage, accumulation_steps=1):
    """Buckets and bounds so small that a small model meets them."""
    zero = {"stage": stage, "reduce_bucket_size": 60, "allgather_bucket_size": 200}
    zero.update(overlap_comm=False, contiguous_gradients=True)
    if stage == 3:
        zero.update(
            stage3_param_persistence_threshold=0,
            stage3_prefetch_bucket_size=40,
            stage3_max_reuse_distance=0,
            stage3_max_live_parameters=1000,
        )
    return {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": accumulation_steps,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
    }


def make_engine(model, stage, accumulation_steps=1):
    """A DeepSpeed engine with PyTorch's own Adam."""
    params = [param for param in model.parameters() if param.requires_grad]
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.Adam(params, lr=1e-2),
        model_parameters=params,
        config=configuration(stage, accumulation_steps),
    )
    return engine


def train(engine, rank, steps=2, backward=None, loss_of=lambda engine, x: engine(x)):
    """Ordinary steps."""
    for step in range(steps):
        loss = loss_of(engine, batch(step, rank))
        (backward or engine.backward)(loss)
        engine.step()


def manually(loss):
    """backward as a user calls it, not the engine."""
    loss.backward()


def two_losses(engine, rank):
    """Two engine.backward over one forward, one step."""
    for step in range(2):
        first, second = engine(batch(step, rank))
        engine.backward(first, retain_graph=True)
        engine.backward(second)
        engine.step()


def exception_recovery(engine, rank):
    """One backward fails; the user goes on."""
    try:
        engine.backward(engine(batch(100, rank)))
    except ValueError:
        engine._running_engine_backward = False
        with contextlib.suppress(Exception):
            engine.optimizer.zero_grad()
        for param in engine.module.parameters():
            param.grad = None
    train(engine, rank)


def func_grad(engine, rank):
    """torch.func.grad over the engine, then an ordinary step."""
    torch.func.grad(lambda x: engine(x))(batch(0, rank)[0])
    train(engine, rank, steps=1)


def func_vmap_grad(engine, rank):
    """vmap(grad(...)) over the engine, then an ordinary step."""
    try:
        torch.func.vmap(torch.func.grad(lambda x: engine(x)))(batch(0, rank, rows=3))
    except RuntimeError as error:
        print(f"refused: {str(error).splitlines()[0]}")
    train(engine, rank, steps=1)


def non_scalar(engine, rank):
    """out.backward(gradient)."""
    for step in range(2):
        out = engine(batch(step, rank))
        out.backward(torch.full_like(out, 0.5))
        engine.step()


def zero_grad_between(engine, rank):
    """A backward whose gradients are thrown away."""
    engine.backward(engine(batch(50, rank)))
    engine.optimizer.zero_grad()
    train(engine, rank)


def make_leaf(model):
    """Makes stage 3 fetch the block as one."""
    deepspeed.utils.set_z3_leaf_modules(model, [models.Block])
    return model


# Scenario: what makes the model, what is done with the engine.
SCENARIOS = {
    "mlp": (lambda: models.Mlp(), train),
    "ckpt_reentrant": (lambda: models.Checkpointed(True), train),
    "ckpt_nonreentrant": (lambda: models.Checkpointed(False), train),
    "ckpt_reentrant_manual": (
        lambda: models.Checkpointed(True),
        lambda engine, rank: train(engine, rank, backward=manually),
    ),
    "frozen_ckpt_reentrant": (lambda: models.Checkpointed(True, True), train),
    "tiled_loss": (lambda: models.Tiled(), train),
    "two_losses_retain": (lambda: models.TwoHeads(), two_losses),
    "two_losses_sum_manual": (
        lambda: models.TwoHeads(),
        lambda engine, rank: train(
            engine, rank, backward=manually, loss_of=lambda engine, x: sum(engine(x))
        ),
    ),
    "manual_backward": (
        lambda: models.Mlp(),
        lambda engine, rank: train(engine, rank, backward=manually),
    ),
    "non_scalar": (lambda: models.Mlp(has_loss=False), non_scalar),
    "gas2": (lambda: models.Mlp(), lambda engine, rank: train(engine, rank, steps=4)),
    "shared_weights": (lambda: models.Tied(), train),
    "unused_params": (lambda: models.Unused(), train),
    "undefined_grad": (lambda: models.UndefinedGradient(), train),
    "exception_recovery": (lambda: models.FailsOnce(), exception_recovery),
    "func_grad": (lambda: models.Mlp(), func_grad),
    "func_vmap_grad": (lambda: models.Mlp(), func_vmap_grad),
    "zero_grad_between": (lambda: models.Mlp(), zero_grad_between),
    "leaf_module": (lambda: make_leaf(models.WithLeafBlock()), train),
    "two_engines": (None, None),
}


def train_two_engines(stage, rank):
    """One loss of two engines; both step."""
    first, second = make_engine(models.Mlp(), stage), make_engine(models.Mlp(), stage)
    for step in range(2):
        x = batch(step, rank)
        (first(x) + 2 * second(x)).backward()
        first.step()
        second.step()


def main(scenario, stage):
    """Runs one scenario."""
    rank, _ = begin()
    torch.manual_seed(7)
    if scenario == "two_engines":
        train_two_engines(int(stage), rank)
    else:
        make, run = SCENARIOS[scenario]
        engine = make_engine(make(), int(stage), 2 if scenario == "gas2" else 1)
        run(engine, rank)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:3])
