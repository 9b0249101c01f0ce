"""Records the conformance programs: python -m programs.record OUT [--only P01,P22] [--device cpu]

Run it in the folder recorder/. One trace a program. `zeroproof conform OUT` runs its own autograd
on the same programs.
"""

import argparse
import importlib
import sys
import traceback
import warnings
from pathlib import Path

import torch
from .context import Context
from .instruments import Instruments
from .registry import PROGRAMS, torch_version

MODULES = (
    "plain_graphs",
    "module_hooks",
    "checkpoints",
    "callbacks",
    "accumulation",
    "transforms",
    "autocast",
    "frameworks",
    "further_rules",
    "training_steps",
    "autograd_additions",
    "framework_additions",
)


def load():
    """All programs, in the order of their numbers: a program's seed is its place."""
    for name in MODULES:
        importlib.import_module(f".{name}", __package__)
    return PROGRAMS


def run(program, instruments, out, device, dtype):
    """Runs one program and writes its trace; the error that ended it, or an empty text."""
    context = Context(program, device, dtype)
    torch.manual_seed(program.seed)
    error = ""
    instruments.current = context
    try:
        program.run(context)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        context.trace.add({"rec": "note", "text": f"program failed: {error}"[:500]})
        traceback.print_exc()
    finally:
        instruments.current = None
    context.grads()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    context.trace.write(out / f"{program.name}.jsonl.gz")
    return error


def record(out, only=(), device="cpu", dtype="float64"):
    """Records programs whose names begin with one of `only`; (program, error) of each."""
    out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    instruments = Instruments()
    instruments.install()
    for program in load():
        is_wanted = not only or program.name.startswith(tuple(only))
        has_device = program.needs != "cuda" or device.startswith("cuda")
        if is_wanted and has_device and torch_version() >= program.since:
            yield program, run(program, instruments, out, device, dtype)


def main():
    """Records what is asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="beginnings of names, with commas between")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    options = parser.parse_args()
    only = [word for word in options.only.split(",") if word]
    failed = 0
    for program, error in record(options.out, only, options.device, options.dtype):
        failed += bool(error)
        print(f"{program.name:<34} {error or 'ended'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
