"""Records every job again: python record_all.py OUT [--only WORD] [--worlds 1,2] [--detail full]

The findings that upstream's DeepSpeed shows on the CPU, and one ordinary run of each kind. What
is bundled under tests/traces comes from here.
"""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 180

# Job, scenario, stages (None: no DeepSpeed), worlds.
RUNS = [
    *[
        ("plain_job.py", name, None, (1,))
        for name in (
            "plain_mlp",
            "plain_ckpt_reentrant",
            "plain_ckpt_nonreentrant",
            "plain_two_losses_retain",
            "plain_undefined_grad",
        )
    ],
    *[
        ("ddp_job.py", name, None, (1, 2))
        for name in (
            "ddp_mlp",
            "ddp_find_unused",
            "ddp_ckpt_reentrant",
            "ddp_no_sync",
        )
    ],
    *[
        ("fsdp2_job.py", name, None, (1, 2))
        for name in (
            "fsdp2_mlp",
            "fsdp2_ckpt_reentrant",
            "fsdp2_ckpt_nonreentrant",
        )
    ],
    ("skipped_collective_job.py", "skipped_collective:Square", None, (2,)),
    ("skipped_collective_job.py", "skipped_collective_abort:Mlp", None, (2,)),
    ("deepspeed_job.py", "mlp", (0, 1, 2, 3), (1, 2)),
    ("deepspeed_job.py", "ckpt_reentrant_manual", (0, 1, 2, 3), (1, 2)),
    ("deepspeed_job.py", "two_losses_retain", (1, 2, 3), (1, 2)),
    ("deepspeed_job.py", "undefined_grad", (1, 2, 3), (1, 2)),
    ("deepspeed_job.py", "exception_recovery", (1, 2, 3), (1, 2)),
    ("deepspeed_job.py", "func_vmap_grad", (3,), (1, 2)),
    ("deepspeed_job.py", "deepspeed_func_grad:func_grad", (2, 3), (1,)),
    ("deepspeed_job.py", "manual_backward", (0, 2), (1, 2)),
    ("deepspeed_job.py", "leaf_module", (3,), (1, 2)),
    ("deepspeed_job.py", "two_engines", (2,), (1, 2)),
]


def free_port():
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def record(out, job, scenario, stage, world, detail):
    """One run; its exit codes are its own business: some are meant to fail."""
    program, _, argument = scenario.partition(":")
    arguments = [argument or program] + ([] if stage is None else [str(stage)])
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", DS_ACCELERATOR="cpu")
    env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), env.get("PYTHONPATH", "")])
    processes = []
    port = str(free_port())
    for rank in range(world):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
        place.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        command = [sys.executable, "-m", "zeroproof_recorder", "run", "--out", str(out)]
        command += ["--program", program, "--detail", detail, str(HERE / job), *arguments]
        processes.append(
            subprocess.Popen(
                command,
                env={**env, **{key: str(value) for key, value in place.items()}},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    codes = []
    for process in processes:
        try:
            _, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
        last = next((x for x in reversed(errors.splitlines()) if "Error" in x), "")
        codes.append(f"{process.returncode}{' ' + last[:100] if last else ''}")
    name = program if stage is None else f"{program} stage {stage}"
    print(f"{name:<36} world {world}  {'  |  '.join(codes)}", flush=True)


def main():
    """Records what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="part of a scenario's name")
    parser.add_argument("--worlds", default="1,2")
    parser.add_argument("--detail", default="")
    options = parser.parse_args()
    worlds = {int(word) for word in options.worlds.split(",")}
    for job, scenario, stages, of_worlds in RUNS:
        if options.only not in scenario:
            continue
        detail = options.detail or ("engine" if stages else "full")
        for stage in stages or (None,):
            for world in sorted(worlds & set(of_worlds)):
                record(options.out, job, scenario, stage, world, detail)


if __name__ == "__main__":
    main()
