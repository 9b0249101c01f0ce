"""Jobs on GPUs over NCCL, without and with the recorder: parameters and compilations must be equal.

    python3 recorder/tests/on_gpus.py [--gpus 2] [--out DIR] [--kinds ddp,ring]

One row a run: identical or CHANGED, the median step in ms and its ratio to the run without. Exit code
1: a job changed; 77: too few GPUs. With --out the traces and dumps stay there for `zeroproof replay`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDER = Path(__file__).resolve().parent.parent
JOB = RECORDER / "jobs" / "gpu_job.py"
KINDS = ("ddp", "ddp_amp", "ddp_compiled", "fsdp2", "fsdp2_compiled", "ring")
RUNS = {
    "hooks": ("--detail", "hooks"),
    "engine": ("--detail", "engine"),
    "full": ("--detail", "full"),
    "numbers": ("--numbers",),
}


def run(kind, gpus, out, recorded=None):
    """What the ranks printed, sorted by line, and the slowest rank's median step."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(gpus)]
    if recorded is None:
        command += [str(JOB), kind, "--dump", str(out / "dumps")]
    else:
        folder = out / f"{kind}-{recorded}"
        command += ["-m", "zeroproof_recorder", "run", "--quiet", "--out", str(folder)]
        command += [*RUNS[recorded], str(JOB), kind]
    env = dict(os.environ, PYTHONPATH=str(RECORDER), CUBLAS_WORKSPACE_CONFIG=":4096:8")
    env.setdefault("OMP_NUM_THREADS", "2")
    env.setdefault("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000")
    ended = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    lines = ended.stdout.splitlines()
    bits = sorted(line for line in lines if line.startswith("BITS"))
    times = [float(line.split()[1]) for line in lines if line.startswith("MS")]
    if ended.returncode or len(bits) != gpus:
        return [f"exit {ended.returncode}: {ended.stderr.strip()[-300:]}"], 0.0
    return bits, max(times)


def compare(kind, gpus, out):
    """The rows of one kind; how many runs changed."""
    plain, base = run(kind, gpus, out)
    print(f"{kind:<16} without   {base:8.2f} ms  {plain[0][-60:]}", flush=True)
    changed = 0
    for recorded in RUNS:
        bits, ms = run(kind, gpus, out, recorded)
        word = "identical" if bits == plain else f"CHANGED {bits[0][-200:]}"
        changed += bits != plain
        ratio = ms / base if base else 0.0
        print(f"{kind:<16} {recorded:<9} {ms:8.2f} ms  {ratio:5.2f} x  {word}", flush=True)
    return changed


def main():
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    import torch

    if torch.cuda.device_count() < options.gpus:
        print(f"skipped: {options.gpus} GPUs needed, {torch.cuda.device_count()} found")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder)
        changed = sum(compare(kind, options.gpus, out) for kind in options.kinds.split(","))
    print(f"{changed} runs changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
