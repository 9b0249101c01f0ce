"""What recording does to compiled DDP and FSDP2: seconds a step, compilations, final bits.

    python compiled.py [--steps 30] [--backend inductor]

Each case runs on two ranks of gloo, without the recorder and at each detail, in new processes.
A step's time is the median after the fifth step; compilations are dynamo's count of frames.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

RECORDER = Path(__file__).resolve().parents[1]
CASES = ("ddp", "fsdp2")
DETAILS = (None, "hooks", "engine", "full")


def train(case, backend, steps):
    """One rank; prints one line of JSON."""
    sys.path[:0] = [str(RECORDER / "jobs")]
    import torch
    from job import batch, begin
    from models import Net
    from torch._dynamo.utils import counters
    from torch.nn.parallel import DistributedDataParallel

    rank, _ = begin(300)
    torch.manual_seed(7)
    net = Net(6, width=256)
    if case == "ddp":
        model = DistributedDataParallel(torch.compile(net, backend=backend), bucket_cap_mb=1)
    else:
        from shards import shard

        for block in net.blocks:
            block.compile(backend=backend)
        model = shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    times = []
    for step in range(steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        model(batch(step, rank, rows=32, width=8)).pow(2).mean().backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    shards = [p.to_local() if hasattr(p, "to_local") else p for p in net.parameters()]
    bits = hash(b"".join(part.detach().numpy().tobytes() for part in shards))
    frames = dict(counters["frames"])
    said = {"ms": 1e3 * statistics.median(times[5:]), "first_s": sum(times[:5]), "bits": bits}
    said.update(compiled=frames.get("ok", 0), unique_graphs=counters["stats"]["unique_graphs"])
    print(json.dumps(said), flush=True)
    torch.distributed.destroy_process_group()


def run(case, backend, steps, detail, out):
    """Both ranks; what rank 0 said."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable]
    if detail:
        command += ["-m", "zeroproof_recorder", "run", "--quiet", "--detail", detail, "--out", out]
    command += [__file__, "--train", case, "--backend", backend, "--steps", str(steps)]
    started = []
    for rank in range(2):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
        env.update(OMP_NUM_THREADS="1", PYTHONHASHSEED="0", PYTHONPATH=str(RECORDER))
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    said = [process.communicate()[0] for process in started]
    return json.loads(said[0].splitlines()[-1])


def main():
    """Prints one line a case and detail."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", choices=CASES, help="used by the ranks themselves")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", default="/tmp/zeroproof_compiled")
    options = parser.parse_args()
    if options.train:
        train(options.train, options.backend, options.steps)
        return
    print("case    detail   ms a step  first five s  frames  graphs  bits as without")
    for case in CASES:
        plain = None
        for detail in DETAILS:
            said = run(
                case, options.backend, options.steps, detail, f"{options.out}/{case}-{detail}"
            )
            plain = plain or said
            equal = "yes" if said["bits"] == plain["bits"] else "NO"
            print(
                f"{case:<7} {detail or '-':<8} {said['ms']:<10.2f} {said['first_s']:<13.2f} "
                f"{said['compiled']:<7} {said['unique_graphs']:<7} {equal}",
                flush=True,
            )


if __name__ == "__main__":
    main()
