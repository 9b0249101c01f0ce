"""What recording costs: interleaved pairs of training with and without it, on the CPU.

python overhead.py [--engine none,0,2,3] [--pairs 12] [--steps 4]

The model has the form of M267 (24 layers, 147 parameter tensors), made small enough for a CPU. A
pair is a block of steps with and one without the recorder, in turns. A line gives, of processor
time, the median and the quartiles of the pairs' ratios, and the ratio of the quickest tenth of all
steps with and without, which is what is left where other jobs disturb; then what it costs to write
the file afterwards. What a step costs more does not depend on its size: a small --width and
--length with many pairs give the milliseconds exactly, where other jobs make large steps unsteady.
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
    """Processor seconds of each of a few steps."""
    seconds = []
    for tokens in batches:
        begin = time.process_time()
        training.step(tokens)
        seconds.append(time.process_time() - begin)
    return seconds


class Measurement:
    """Blocks of steps with and without the recorder, in pairs."""

    def __init__(self, training, batches, detail, has_numbers=False):
        self._has_numbers = has_numbers
        self.on, self.off, self.ratios, self.write_s = [], [], [], []
        self.events = 0
        self._training, self._batches, self._detail = training, batches, detail

    def add_pair(self, is_first_recorded):
        """One more block of each kind."""
        for is_recorded in (is_first_recorded, not is_first_recorded):
            gc.collect()
            if is_recorded:
                self._add_recorded()
            else:
                self.off.append(block_s(self._training, self._batches))
        self.ratios.append(100 * (sum(self.on[-1]) / sum(self.off[-1]) - 1))

    def _add_recorded(self):
        with tempfile.TemporaryDirectory() as out:
            options = {"out": out, "detail": self._detail, "numbers": self._has_numbers}
            options.update(quiet=True, **self._training.watched)
            with zeroproof_recorder.record(**options) as recording:
                self._training.step(self._batches[0])  # finds its threads and pages
                self.on.append(block_s(self._training, self._batches))
                begin = time.process_time()
                recording.session.flush()
                steps = len(self._batches) + 1
                self.write_s.append((time.process_time() - begin) / steps)
                self.events = recording.session.events / steps

    def report(self, name):
        """One line."""
        off, on = (_quickest_tenth(blocks) for blocks in (self.off, self.on))
        first, median, third = statistics.quantiles(self.ratios, n=4)
        print(
            f"{name:<18} {self._detail:<7} {1e3 * off:6.1f} ms a step   "
            f"pairs {median:+6.2f} % [{first:+.2f}, {third:+.2f}]   "
            f"quickest {100 * (on / off - 1):+6.2f} %, {1e3 * (on - off):+5.2f} ms   "
            f"{self.events:5.0f} events a step, "
            f"{1e6 * statistics.median(self.write_s) / self.events:4.1f} us each to write later",
            flush=True,
        )


def _quickest_tenth(blocks):
    seconds = sorted(step for block in blocks for step in block)
    return statistics.mean(seconds[: max(1, len(seconds) // 10)])


def main():
    """Measures everything that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="none,2,3", help="none or a ZeRO stage, by commas")
    parser.add_argument("--detail", default="", help="levels, by commas (default: all)")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--steps", type=int, default=4, help="steps in a block")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--numbers", action="store_true", help="record them too")
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
        model = Decoder(options.width)
        training = PlainTraining(model) if engine == "none" else EngineTraining(model, int(engine))
        name = "plain PyTorch" if engine == "none" else f"DeepSpeed stage {engine}"
        block_s(training, batches)
        for detail in levels:
            measurement = Measurement(training, batches, detail, options.numbers)
            for pair in range(options.pairs):
                measurement.add_pair(pair % 2 == 0)
            measurement.report(name)


if __name__ == "__main__":
    main()
