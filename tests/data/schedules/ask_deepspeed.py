"""Asks the installed DeepSpeed which learning rates its schedulers give, step by step.

Run: python tests/data/schedules/ask_deepspeed.py

The answers go to deepspeed.json beside this script. A row of "schedules" has DeepSpeed's own
scheduler class on a torch optimizer: what each parameter group has before the first step and after
each. A row of "engines" has a DeepSpeed engine that trains in float16: the rates after each call of
step(), skipped or not.
"""

import contextlib
import importlib
import json
import os
import pathlib
import tempfile
import unittest.mock

os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")

import deepspeed
import torch
from deepspeed.runtime import lr_schedules

ANSWERS = pathlib.Path(__file__).parent / "deepspeed.json"
ADAM = {"type": "AdamW", "params": {"lr": 0.03, "betas": [0.9, 0.999]}}
SGD = {"type": "SGD", "params": {"lr": 0.3, "momentum": 0.5}}


def row(kind, params, steps, groups=1, optimizer=ADAM, resumes_at=None):
    return {
        "scheduler": {"type": kind, "params": params},
        "optimizer": optimizer,
        "groups": groups,
        "steps": steps,
        "resumes_at": resumes_at,
    }


ROWS = [
    row("WarmupLR", {}, 12),
    row("WarmupLR", {"warmup_num_steps": 7}, 12),
    row("WarmupLR", {"warmup_num_steps": 1, "warmup_max_lr": 0.7}, 5),
    row("WarmupLR", {"warmup_min_lr": 1e-5, "warmup_max_lr": 3e-3, "warmup_num_steps": 10,
                     "warmup_type": "linear"}, 15),
    row("WarmupLR", {"warmup_min_lr": [1e-4, 0.0, 2e-4], "warmup_max_lr": [1e-2, 3e-3, 1e-4],
                     "warmup_num_steps": 9, "warmup_type": "log"}, 14, groups=3),
    row("WarmupLR", {"warmup_num_steps": 6, "warmup_type": "cosine"}, 8),
    row("WarmupLR", {"warmup_num_steps": 20, "last_batch_iteration": 4}, 10),
    row("WarmupLR", {"warmup_num_steps": 30, "warmup_max_lr": None}, 9, groups=2, optimizer=SGD,
        resumes_at=5),
    row("WarmupDecayLR", {"total_num_steps": 20, "warmup_num_steps": 5}, 26),
    row("WarmupDecayLR", {"total_num_steps": 17.5, "warmup_num_steps": 4, "warmup_min_lr": 1e-4,
                          "warmup_max_lr": [1e-2, 0.1], "warmup_type": "linear"}, 22, groups=2),
    row("WarmupDecayLR", {"total_num_steps": 3, "warmup_num_steps": 8, "warmup_max_lr": None}, 12),
    row("WarmupDecayLR", {"total_num_steps": 12, "warmup_num_steps": 1}, 14, resumes_at=6),
    row("WarmupCosineLR", {"total_num_steps": 30, "warmup_num_steps": 6}, 36),
    row("WarmupCosineLR", {"total_num_steps": 25, "warmup_num_steps": 5, "warmup_min_ratio": 0.1,
                           "cos_min_ratio": 0.05, "warmup_type": "linear"}, 30, groups=2),
    row("WarmupCosineLR", {"total_num_steps": 4, "warmup_num_steps": 6}, 12),
    row("WarmupCosineLR", {"total_num_steps": 50, "warmup_num_steps": 3,
                           "last_batch_iteration": 20}, 20, optimizer=SGD),
    row("LRRangeTest", {}, 10),
    row("LRRangeTest", {"lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 3,
                        "lr_range_test_step_rate": 2.5}, 13),
    row("LRRangeTest", {"lr_range_test_min_lr": [1e-4, 2e-3], "lr_range_test_step_size": 4,
                        "lr_range_test_step_rate": 0.7, "lr_range_test_staircase": True}, 18,
        groups=2, resumes_at=7),
    row("OneCycle", {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-2}, 10),
    row("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 7,
                     "decay_step_size": 3, "decay_lr_rate": 0.5, "decay_mom_rate": 0.01}, 30),
    row("OneCycle", {"cycle_min_lr": [1e-3, 2e-3], "cycle_max_lr": [1e-2, 5e-2],
                     "cycle_first_step_size": 6, "cycle_second_step_size": 10,
                     "cycle_first_stair_count": 3, "cycle_second_stair_count": 5,
                     "cycle_min_mom": [0.7, 0.75], "cycle_max_mom": 0.95}, 24, groups=2),
    row("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 3,
                     "cycle_second_step_size": 7, "cycle_first_stair_count": 4}, 18),
    row("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 5,
                     "cycle_second_step_size": 0, "decay_step_size": 2, "decay_lr_rate": 0.1,
                     "cycle_momentum": False}, 14),
    row("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 4.5,
                     "decay_step_size": 2.5, "decay_mom_rate": 0.02}, 20, optimizer=SGD),
    row("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 6,
                     "decay_step_size": 4, "decay_lr_rate": 0.25, "decay_mom_rate": 0.005}, 25,
        resumes_at=9),
]


def make(asked):
    weights = [torch.nn.Parameter(torch.ones(1)) for _ in range(asked["groups"])]
    params = dict(asked["optimizer"]["params"])
    groups = [{"params": [weight]} for weight in weights]
    optimizer = getattr(torch.optim, asked["optimizer"]["type"])(groups, **params)
    kind = getattr(lr_schedules, asked["scheduler"]["type"])
    return optimizer, kind(optimizer, **asked["scheduler"]["params"])


def rates(optimizer):
    return [[group["lr"], *group.get("betas", ())] for group in optimizer.param_groups]


def answer(asked):
    """Rates before the first step and after each, and the scheduler's state at the end."""
    optimizer, scheduler = make(asked)
    told = [rates(optimizer)]
    for step in range(asked["steps"]):
        if step == asked["resumes_at"]:  # in another process: both states come from a checkpoint
            states = optimizer.state_dict(), scheduler.state_dict()
            optimizer, scheduler = make(asked)
            optimizer.load_state_dict(states[0])
            scheduler.load_state_dict(states[1])
        scheduler.step()
        told.append(rates(optimizer))
    return {**asked, "rates": told, "state": scheduler.state_dict()}


ENGINES = [
    {"stage": stage, "power": power, "steps": 12,
     "scheduler": {"type": kind, "params": params}}
    for stage in (1, 2, 3)
    for power in (8, 24)
    for kind, params in (
        ("WarmupLR", {"warmup_num_steps": 5, "warmup_max_lr": 0.01}),
        ("OneCycle", {"cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 4}),
    )
]


def engine_answer(asked):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "fp16": {"enabled": True, "initial_scale_power": asked["power"], "hysteresis": 1},
        "zero_optimization": {"stage": asked["stage"]},
        "optimizer": ADAM,
        "scheduler": asked["scheduler"],
    }
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config)
    told = [rates(engine.optimizer.optimizer)]
    skipped = []
    for _ in range(asked["steps"]):
        before = engine.skipped_steps
        engine.backward(engine(torch.ones(1, 8, dtype=torch.float16)).float().mean())
        engine.step()
        told.append(rates(engine.optimizer.optimizer))
        skipped.append(engine.skipped_steps > before)
    return {**asked, "rates": told, "skipped": skipped}


def start_one_rank():
    """One gloo rank; no operator is compiled, and an optimizer's kernel is a no-op."""
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    for builder in ("FusedAdamBuilder", "CPUAdamBuilder"):
        kind = deepspeed.get_accelerator().get_op_builder(builder)
        kind.load = lambda self, verbose=True: unittest.mock.MagicMock()
    deepspeed.get_accelerator().is_fp16_supported = lambda: True
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29999")
    store = torch.distributed.FileStore(tempfile.mktemp(), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)


def main():
    schedules = [json.dumps(answer(asked)) for asked in ROWS]
    start_one_rank()
    with contextlib.redirect_stdout(None):
        engines = [json.dumps(engine_answer(asked)) for asked in ENGINES]
    about = f"Learning rates of DeepSpeed {deepspeed.__version__}; see ask_deepspeed.py."
    lines = (f'{{"about": {json.dumps(about)},\n"schedules": [\n' + ",\n".join(schedules) +
             '\n],\n"engines": [\n' + ",\n".join(engines) + "\n]}\n")
    ANSWERS.write_text(lines)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
