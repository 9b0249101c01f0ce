"""What recording costs: interleaved pairs of training with and without it, on the CPU.

python overhead.py [--engine none,0,2,3] [--pairs 12] [--steps 4]

The model has the form of M267 (24 layers, 147 parameter tensors), made small enough for a CPU. A
pair is a block of steps with and one without the recorder, in turns; a line tells the median of
the pairs' ratios, their quartiles, and what it costs to write the file afterwards.
"""

import argparse
import gc
import logging
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "jobs")]

import zeroproof_recorder  # noqa: E402
from zeroproof_recorder.options import Detail  # noqa: E402


class Layer(nn.Module):
    """Six tensors: norm, QKV, output projection, norm, up, down."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.mlp_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.wqkv = nn.Linear(width, 3 * width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        self.w1 = nn.Linear(width, 2 * width, bias=False)
        self.w2 = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (t.view(split).transpose(1, 2) for t in self.wqkv(self.attn_norm(x)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.w2(functional.gelu(self.w1(self.mlp_norm(x)), approximate="tanh"))


class Decoder(nn.Module):
    """M267's tensors in its order: embedding, layers, final norm, head."""

    def __init__(self, width=128, layers=24, words=2000, heads=4):
        super().__init__()
        self.tok_emb = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.final_norm = nn.RMSNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, targets):
        x = self.tok_emb(tokens)
        for layer in self.layers:
            x = layer(x)
        logits = self.lm_head(self.final_norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class PlainTraining:
    """Forward, backward, AdamW."""

    def __init__(self, model):
        self.model = model
        self.watched = {"model": model}
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(self, tokens):
        """One iteration."""
        self.optimizer.zero_grad()
        self.model(tokens[:, :-1], tokens[:, 1:]).backward()
        self.optimizer.step()


class EngineTraining:
    """The same through a DeepSpeed engine."""

    def __init__(self, model, stage):
        import importlib

        import deepspeed

        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
        config = {
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": stage},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "steps_per_print": 1 << 30,
        }
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
        self.watched = {"engine": self.engine}

    def step(self, tokens):
        """One iteration."""
        loss = self.engine(tokens[:, :-1], tokens[:, 1:])
        self.engine.backward(loss)
        self.engine.step()


def block_s(training, batches):
    """Seconds of a few steps."""
    begin = time.perf_counter()
    for tokens in batches:
        training.step(tokens)
    return time.perf_counter() - begin


def measure(training, batches, detail, pairs):
    """Ratios of pairs, seconds a step without, seconds and events of writing."""
    ratios, plain, write_s, events = [], [], [], 0
    for pair in range(pairs):
        with tempfile.TemporaryDirectory() as out:
            for is_recorded in (pair % 2 == 0, pair % 2 == 1):
                gc.collect()
                if not is_recorded:
                    off_s = block_s(training, batches)
                    continue
                options = {"out": out, "detail": detail, "quiet": True, **training.watched}
                with zeroproof_recorder.record(**options) as recording:
                    training.step(batches[0])  # the first one finds its threads and pages
                    on_s = block_s(training, batches)
                    begin = time.perf_counter()
                    before = recording.session.events
                    recording.session.flush()
                    write_s.append(time.perf_counter() - begin)
                    events = recording.session.events - before
        ratios.append(on_s / off_s)
        plain.append(off_s / len(batches))
    return ratios, plain, write_s, events / (len(batches) + 1)


def report(name, detail, measured):
    """One line."""
    ratios, plain, write_s, events = measured
    first, median, third = statistics.quantiles([100 * (ratio - 1) for ratio in ratios], n=4)
    print(
        f"{name:<18} {detail:<7} {1e3 * statistics.median(plain):7.1f} ms a step  "
        f"{median:+6.2f} % [{first:+.2f}, {third:+.2f}]  {events:7.0f} events a step  "
        f"writing them afterwards {1e3 * statistics.median(write_s):6.0f} ms a block",
        flush=True,
    )


def main():
    """Measures everything that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="none,2,3", help="none or a ZeRO stage, by commas")
    parser.add_argument("--detail", default="", help="levels, by commas (default: all)")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--steps", type=int, default=4, help="steps in a block")
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        os.environ.setdefault(name, value)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29671")
    batches = [torch.randint(0, 2000, (2, options.length + 1)) for _ in range(options.steps)]
    levels = options.detail.split(",") if options.detail else [d.name.lower() for d in Detail]
    for engine in options.engine.split(","):
        torch.manual_seed(7)
        model = Decoder()
        training = PlainTraining(model) if engine == "none" else EngineTraining(model, int(engine))
        name = "plain PyTorch" if engine == "none" else f"DeepSpeed stage {engine}"
        block_s(training, batches)
        for detail in levels:
            report(name, detail, measure(training, batches, detail, options.pairs))


if __name__ == "__main__":
    main()
