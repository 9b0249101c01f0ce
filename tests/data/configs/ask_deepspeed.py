"""Asks the installed DeepSpeed what it does with each configuration of this folder.

Run: python tests/data/configs/ask_deepspeed.py [FILE ...]

Each file is given to deepspeed.initialize on two gloo ranks of the CPU, and one optimizer step is
made. The answers go to deepspeed.json beside this script (only those of FILEs, where some are
named). A file with "auto" is asked twice: as it is, and with the values that the Trainer of
transformers puts in its place.
"""

import contextlib
import importlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest.mock

os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")

import deepspeed
import hjson
import torch

# No operator is compiled: whether a configuration is accepted does not depend on what a kernel
# computes. A call of an optimizer's kernel is a no-op.
importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
for builder in ("FusedAdamBuilder", "CPUAdamBuilder", "CPULionBuilder", "CPUAdagradBuilder"):
    kind = deepspeed.get_accelerator().get_op_builder(builder)
    kind.load = lambda self, verbose=True: unittest.mock.MagicMock()
deepspeed.get_accelerator().is_fp16_supported = lambda: True

HERE = pathlib.Path(__file__).parent
ANSWERS = HERE / "deepspeed.json"
RANKS = 2
LIMIT = 60.0  # seconds for one configuration
# What the Trainer puts in place of "auto": its own arguments, here the defaults of them.
TRAINER = {
    "train_batch_size": RANKS,
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 1,
    "gradient_clipping": 1.0,
    "enabled": False,
    "lr": 5e-5,
    "betas": [0.9, 0.999],
    "eps": 1e-8,
    "weight_decay": 0.0,
    "warmup_min_lr": 0,
    "warmup_max_lr": 5e-5,
    "warmup_num_steps": 10,
    "total_num_steps": 100,
    "reduce_bucket_size": 64,
    "stage3_prefetch_bucket_size": 58,
    "stage3_param_persistence_threshold": 80,
}


def filled(value, name=""):
    """The same with "auto" replaced."""
    if isinstance(value, dict):
        return {key: filled(inner, key) for key, inner in value.items()}
    return TRAINER.get(name, value) if value == "auto" else value


def has_auto(value):
    if isinstance(value, dict):
        return any(has_auto(inner) for inner in value.values())
    return value == "auto"


def optimizer_for(config, model):
    """A client's optimizer, as a Trainer makes one, where the configuration has none."""
    if not isinstance(config, dict) or "optimizer" in config:
        return None
    zero = config.get("zero_optimization")
    offload = isinstance(zero, dict) and (zero.get("offload_optimizer") or zero.get("cpu_offload"))
    kind = deepspeed.ops.adam.DeepSpeedCPUAdam if offload else torch.optim.AdamW
    return kind(model.parameters(), lr=1e-3)


def train_once(config, parsed):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=optimizer_for(parsed, model),
        model_parameters=model.parameters(),
        config=config,
    )
    dtype = next(engine.parameters()).dtype
    for _ in range(engine.gradient_accumulation_steps()):
        x = torch.ones(engine.train_micro_batch_size_per_gpu(), 8, dtype=dtype)
        engine.backward(engine(x).float().mean())
        engine.step()
    scale = getattr(engine.optimizer, "cur_scale", getattr(engine.optimizer, "loss_scale", None))
    return {
        "runs": True,
        "stage": engine.zero_optimization_stage(),
        "micro": engine.train_micro_batch_size_per_gpu(),
        "accumulation": engine.gradient_accumulation_steps(),
        "skipped": engine.skipped_steps,
        "loss_scale": scale,
    }


def parse(path):
    try:
        return hjson.load(open(path))
    except Exception:
        return None


def in_one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = lines[0] if lines else ""
    if "validation error" in told and len(lines) > 2:  # pydantic: the key, then the reason
        told = f"{told}: {lines[1]}: {lines[2].split(' [type=')[0]}"
    return f"{type(error).__name__}: {told}"[:300]


def rank_main(rank, folder, config, parsed):
    """In a process of its own: the answer of one rank, as a file."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29999")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    store = torch.distributed.FileStore(f"{folder}/store", RANKS)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    try:
        answer = train_once(config, parsed)
    except BaseException as error:  # noqa: BLE001 - SystemExit of a missing kernel is an answer too
        answer = {"runs": False, "raises": in_one_line(error)}
    answer["modules"] = sorted(sys.modules)
    partial = pathlib.Path(folder, f"partial{rank}")
    partial.write_text(json.dumps(answer))
    partial.rename(pathlib.Path(folder, f"r{rank}"))
    os._exit(0)


def ask(config, parsed):
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(RANKS):
            child = os.fork()
            if child == 0:
                rank_main(rank, folder, config, parsed)
            children.append(child)
        end = time.monotonic() + LIMIT
        first = pathlib.Path(folder, "r0")
        waiting = set(children)
        while waiting and time.monotonic() < end:
            waiting = {child for child in waiting if os.waitpid(child, os.WNOHANG) == (0, 0)}
            if first.exists() and '"raises"' in first.read_text():
                break
            time.sleep(0.02)
        for child in waiting:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
        if not first.exists():
            return {"runs": False, "raises": f"no answer within {LIMIT:.0f} s, or a crash"}
        answer = json.loads(first.read_text())
    import_for_later(answer.pop("modules"))
    return answer


def import_for_later(modules):
    """What a child had to import, the next ones find here: ten times as fast."""
    for name in modules:
        if name not in sys.modules and not name.startswith("__"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def main(names):
    answers = json.loads(ANSWERS.read_text()) if names and ANSWERS.exists() else {}
    known = {ANSWERS.name, "verdicts.json"}
    paths = [pathlib.Path(name) for name in names] or sorted(HERE.glob("*.json"))
    for path in paths:
        if path.name in known:
            continue
        parsed = parse(path)
        answers[path.name] = ask(str(path), parsed)
        if has_auto(parsed):
            config = filled(parsed)
            answers[path.name]["filled"] = ask(config, config)
        print(path.name, answers[path.name], flush=True)
    ordered = {name: answers[name] for name in sorted(answers)}
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in ordered.items()]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
