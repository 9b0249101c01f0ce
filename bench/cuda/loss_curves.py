#!/usr/bin/env python3
"""Loss curves of the engine beside torch's: the same weights at first, the same data, the same hyperparameters.

  bench/cuda/loss_curves.py ZEROPROOF --bench DIR [--gpus 1,2] [--steps 50] [--stages 1,2,3] [--out DIR]

DIR has torch_baseline.py (../shared/prototype/bench). `zeroproof train --save-initial` gives torch weights and batches. For
each number of GPUs torch trains by DDP: eager, eager once more, compiled, and eager as its script ships it (rotary
tables in bf16; the others have them in float32). A loss is the mean over ranks. Exit code 0 where of every run of ours
the largest difference to eager or compiled DDP is at most 3 times the largest between those two. --model tiny does the
same on CPUs without a GPU, in float32, where eager stands for compiled with --backend eager.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

TIMES = 3
TORCH_RUNS = {"eager": ("none", "fp32"), "eager again": ("none", "fp32"), "compiled": ("block", "fp32"),
              "eager as shipped": ("none", "auto")}


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}"""
    data = memoryview(bytearray(pathlib.Path(path).read_bytes()))
    length = int.from_bytes(data[:8], "little")
    tensors = data[8 + length:]
    return {name: (of["dtype"], of["shape"], tensors[slice(*of["data_offsets"])])
            for name, of in json.loads(bytes(data[8:8 + length])).items()}


# ---------------------------------------------------------------------------------------- torch's side


def train_torch(options):
    """One rank of the torch runs; rank 0 writes {run: losses}."""
    import torch
    import torch.distributed as dist
    sys.path.insert(0, options.bench)
    import torch_baseline as baseline

    to_torch = {"F32": torch.float32, "I32": torch.int32}
    state = {name: torch.frombuffer(data, dtype=to_torch[dtype]).reshape(shape)
             for name, (dtype, shape, data) in read_safetensors(options.initial).items()}
    batches = [state.pop(f"batches.{part}").long() for part in ("ids", "targets")]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    is_cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if is_cuda else torch.device("cpu")
    if is_cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if is_cuda else "gloo")
    sizes = baseline.Cfg()
    weights = list(state.values())
    sizes.L, sizes.V, sizes.D = (len(weights) - 3) // 6, *weights[0].shape
    sizes.H, sizes.FF = sizes.D // 64, weights[5].shape[0]
    mine = slice(rank * options.batch, (rank + 1) * options.batch)
    data = [tuple(part[turn, mine].to(device).contiguous() for part in batches) for turn in range(len(batches[0]))]
    models = []
    make = baseline.GPT
    baseline.GPT = lambda *given: models.append(make(*given)) or models[-1]
    curves = {}
    for name, (compiled, rope) in TORCH_RUNS.items():
        given = baseline.parser().parse_args([])
        given.engine, given.seq, given.batch, given.compile, given.rope = "ddp", options.length, options.batch, compiled, rope
        baseline.set_fns(given)
        step, _ = baseline.build(given, sizes, device)
        with torch.no_grad():
            for parameter, weight in zip(models.pop().parameters(), weights, strict=True):
                parameter.copy_(weight)
        losses = torch.stack([step(*data[i % len(data)]).detach().float() for i in range(options.steps)])
        dist.all_reduce(losses)
        curves[name] = (losses / world).tolist()
        del step
        if rank == 0:  # what there is, should a later run fail
            pathlib.Path(options.curves).write_text(json.dumps(curves))
    dist.destroy_process_group()


def run_torch(options, gpus, initial, visible):
    if options.torch_curves:
        return json.loads((options.torch_curves / f"torch_{gpus}.json").read_text())
    curves = options.out / f"torch_{gpus}.json"
    port = random.randrange(20000, 40000)
    command = [sys.executable, __file__, "--torch-rank", "--bench", options.bench, "--initial", str(initial), "--curves", str(curves)]
    command += ["--steps", str(options.steps), "--batch", str(options.batch), "--length", str(options.length), options.zeroproof]
    processes = []
    for rank in range(gpus):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(gpus), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port), OMP_NUM_THREADS="4", COMPILE_BACKEND=options.backend)
        if options.model == "tiny":
            environment["SMOKE_DTYPE"] = "float32"
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        with open(options.out / f"torch_{gpus}_r{rank}.log", "w") as log:
            processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    try:
        for process in processes:
            process.wait(options.limit_s)
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
    return json.loads(curves.read_text()) if curves.exists() else {}


# ------------------------------------------------------------------------------------------- our side


def run_ours(options, gpus, stage, visible, initial=None):
    is_tiny = options.model == "tiny"
    command = [options.zeroproof, "train", "--model", options.model, "--runtime", "host" if is_tiny else "cuda"]
    command += ["--dtype", "float32" if is_tiny else "bf16", "--batch", str(options.batch), "--length", str(options.length)]
    command += ["--steps", str(options.steps), "--world-size", str(gpus), "--stage", str(stage), "--json"]
    if initial:
        command += ["--save-initial", str(initial)]
    environment = dict(os.environ) if visible is None else dict(os.environ, CUDA_VISIBLE_DEVICES=visible)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.limit_s)
        return json.loads(done.stdout)["losses"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError) as error:
        print(f"failed: {' '.join(command)}: {type(error).__name__}", flush=True)
        return None


def curves_of(options, gpus, visible):
    """({our run: losses}, {torch's run: losses})"""
    initial = None if options.torch_curves else options.out / f"initial_{gpus}.safetensors"
    stages = [0] if gpus == 1 else options.stages
    ours = {f"stage {stages[0]}": run_ours(options, gpus, stages[0], visible, initial)}
    torchs = run_torch(options, gpus, initial, visible) if options.torch_curves or initial.exists() else {}
    for stage in stages[1:]:
        ours[f"stage {stage}"] = run_ours(options, gpus, stage, visible)
    if initial:
        initial.unlink(missing_ok=True)
    return ours, torchs


# ------------------------------------------------------------------------------------------- the table


def largest_difference(left, right):
    """(how much, at which step)"""
    return max((abs(x - y), step) for step, (x, y) in enumerate(zip(left, right, strict=True)))


def judge(gpus, ours, torchs):
    """The rows of one number of GPUs, and whether all of ours are near enough."""
    pair = [torchs.get("eager"), torchs.get("compiled")]
    if None in pair:
        return [f"{gpus} GPUs  failed: torch has no {'eager' if pair[0] is None else 'compiled'} run"], False
    between, at = largest_difference(*pair)
    rows = [f"{gpus} GPUs  torch eager beside compiled                  {between:.6f} at step {at}"]
    for name in ("eager again", "eager as shipped"):
        if name in torchs:
            other = "eager" if name == "eager again" else "compiled"
            rows.append(f"{gpus} GPUs  torch {name + ' beside ' + other:40} {largest_difference(torchs[name], torchs[other])[0]:.6f}")
    is_near = True
    for name, losses in ours.items():
        if losses is None:
            rows.append(f"{gpus} GPUs  {name}: failed")
            is_near = False
            continue
        apart = [largest_difference(losses, of) for of in pair]
        ratio = max(apart)[0] / between if between else float(max(apart)[0] > 0) * float("inf")
        is_near = is_near and ratio <= TIMES
        rows.append(f"{gpus} GPUs  {name}: {losses[0]:.4f} to {losses[-1]:.4f}; beside DDP eager {apart[0][0]:.6f} at step {apart[0][1]}, "
                    f"compiled {apart[1][0]:.6f} at step {apart[1][1]}; {ratio:.2f} of eager beside compiled "
                    f"({'within' if ratio <= TIMES else 'NOT WITHIN'} {TIMES})")
    return rows, is_near


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--model", default="m267", choices=["m267", "tiny"])
    parser.add_argument("--gpus", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--stages", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--limit-s", type=float, default=240, help="of one run")
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    parser.add_argument("--torch-curves", type=pathlib.Path, help="a folder of an earlier run, of the same weights and data: torch's are its")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/loss_curves"))
    parser.add_argument("--torch-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--initial", help=argparse.SUPPRESS)
    parser.add_argument("--curves", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_rank:
        return train_torch(options)
    options.out.mkdir(parents=True, exist_ok=True)
    # One GPU's runs beside the others' would share a GPU: one after the other.
    rows, curves, held = [], {}, True
    for gpus in options.gpus:
        ours, torchs = curves_of(options, gpus, "0" if gpus == 1 and options.model != "tiny" else None)
        curves[gpus] = {"ours": ours, "torch": torchs}
        more, is_near = judge(gpus, ours, torchs)
        rows += more
        held = held and is_near
    (options.out / "curves.json").write_text(json.dumps(curves))
    print("\n".join(rows))
    print("held: every run of ours is near enough" if held else "FAILED")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
