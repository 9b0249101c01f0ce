"""What the scripts share: DeepSpeed on the CPU over gloo, a process a rank; no compiler, no GPU.

The gradient of a `Scale` is its input, whatever the weights are, and the optimizer is SGD with
learning rate 1, so what a step applied is the gradient that it used. Rank 0 prints one line a case:
`H3 CONFIRMED (case): observed …; expected …`, or `absent` where this release does the right thing.
run.sh compares the lines with those recorded of the release. An exit code above 0: a rank crashed.
"""

import importlib
import logging
import os
import socket
import subprocess
import sys

os.environ.setdefault("DS_ACCELERATOR", "cpu")

import deepspeed
import torch
from deepspeed.accelerator import get_accelerator
from deepspeed.utils import safe_get_full_fp32_param

WIDTH = 4


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * self.weight


class TwoScales(torch.nn.Module):
    """`use` names the layers that take part."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Scale(), Scale()

    def forward(self, x, use="ab"):
        return sum(getattr(self, name)(x).sum() for name in use)


def make(stage, model=None, gas=1, zero=None, **config):
    """An engine; `zero` and the keywords go into its configuration."""
    model = model or TwoScales()
    if stage == 3:
        zero = {"stage3_param_persistence_threshold": 0, **(zero or {})}
    document = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": gas,
        "gradient_clipping": 0.0,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
        "zero_optimization": {"stage": stage, "overlap_comm": False, **(zero or {})},
        **config,
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return deepspeed.initialize(
        model=model, optimizer=optimizer, config=document, dist_init_required=False
    )[0]


def fp16(**scale):
    return {"enabled": True, **scale}


def inputs(value, engine=None):
    """A vector of `value`, in the engine's dtype."""
    dtype = torch.float32
    if engine is not None and engine.fp16_enabled():
        dtype = torch.float16
    return torch.full((WIDTH,), float(value), dtype=dtype)


def weights(engine):
    full = {}
    for name, weight in engine.module.named_parameters():
        value = safe_get_full_fp32_param(weight)
        full[name.removesuffix(".weight")] = (
            (weight if value is None else value).detach().clone().float()
        )
    return full


def step(engine):
    """What the step took from each weight: the gradient it used, of the first element."""
    with torch.no_grad():
        before = weights(engine)
        engine.step()
        after = weights(engine)
    return {name: round((before[name] - after[name]).reshape(-1)[0].item(), 7) for name in before}


def result(number, case, observed, expected, is_shown=None):
    """One line; the hazard shows where what was observed is not what was expected."""
    shown = observed != expected if is_shown is None else is_shown
    _say(number, "CONFIRMED" if shown else "absent", case, observed, expected)


def control(number, case, observed, expected):
    """The same without what the hazard needs: every release gives the expected result."""
    _say(number, "control" if observed == expected else "fails", case, observed, expected)


def may_crash(number, case, observed, expected):
    """Before a case that a signal may end: cases.py then reports `observed` of it."""
    _say(number, "may crash", case, observed, expected)


def not_run(number, case, reason, expected):
    """This release lacks what the case is about."""
    _say(number, "not run", case, reason, expected)


def _say(number, word, case, observed, expected):
    if int(os.environ["RANK"]) == 0:
        print(f"{number} {word} ({case}): observed {observed}; expected {expected}", flush=True)


def error_of(call, *args):
    """The beginning of what `call` raises, or 'no error'."""
    try:
        call(*args)
    except Exception as error:
        beginning = str(error).split("  ")[0].split("\n")[0] or "(empty)"
        return f"{type(error).__name__}: {beginning}"
    return "no error"


def step_or_error(engine):
    """What the step took from `a`, or the beginning of what it raised."""
    updates = {}
    error = error_of(lambda: updates.update(step(engine)))
    return updates.get("a", error)


def start():
    torch.set_num_threads(1)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # Only speeds up inference, and would want a compiler.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    # PyTorch multiplies float16 on any CPU; DeepSpeed asks for one that is fast at it.
    get_accelerator().is_fp16_supported = lambda: True
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)


def main(work, world=1):
    """Runs `work()` on every rank of a fresh group."""
    if "RANK" in os.environ:
        start()
        work()
        sys.stdout.flush()
        os._exit(0)  # a stuck engine may not be torn down cleanly
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = dict(
        os.environ,
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        CUDA_VISIBLE_DEVICES="",
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, os.path.abspath(sys.argv[0])],
            env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)),
        )
        for rank in range(world)
    ]
    sys.exit(max(1 if code < 0 else code for code in [rank.wait() for rank in ranks]))
