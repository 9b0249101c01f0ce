"""Updates of real PyTorch (2.11.0) optimizers, foreach=False, for optimizers_test.cpp, and a small
training run for baseline_test.cpp.

  python record_optimizers.py > optimizers.json
"""
import json
import sys

import torch
import torch.nn.functional as F

STEPS = 4
SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
CASES = [
    ("sgd", SGD, [{"lr": 0.1}]),
    ("sgd", SGD, [{"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05}]),
    ("sgd", SGD, [{"lr": 0.1, "momentum": 0.9, "dampening": 0.3}]),
    ("sgd", SGD, [{"lr": 0.1, "momentum": 0.8, "nesterov": True, "maximize": True}]),
    ("sgd", SGD, [{"lr": 0.1, "momentum": 0.9}, {"lr": 0.02, "weight_decay": 0.5}]),
    ("adam", ADAM, [{"lr": 0.01}]),
    ("adam", ADAM, [{"lr": 0.01, "betas": (0.4, 0.95), "eps": 1e-3, "weight_decay": 0.1}]),
    ("adam", ADAM, [{"lr": 0.01, "maximize": True}, {"lr": 0.1, "betas": (0.8, 0.9)}]),
    ("adamw", ADAMW, [{"lr": 0.01}]),
    ("adamw", ADAMW, [{"lr": 0.01, "weight_decay": 0.2}, {"lr": 0.05, "weight_decay": 0.0}]),
]


def numbers(x):
    return x.detach().double().flatten().tolist()


def updates(kind, optimizer_class, groups, dtype):
    """Two parameters a group; the second one has no gradient in step 1."""
    generator = torch.Generator().manual_seed(5)
    rand = lambda n: torch.randn(n, generator=generator).to(dtype)
    parameters = [rand(n) for _ in groups for n in (3, 2)]
    start = [numbers(p) for p in parameters]
    optimizer = optimizer_class(
        [{"params": parameters[2 * i : 2 * i + 2], **g} for i, g in enumerate(groups)],
        foreach=False,
    )
    steps = []
    for step in range(STEPS):
        for i, parameter in enumerate(parameters):
            parameter.grad = None if step == 1 and i % 2 else rand(parameter.numel())
        grads = [None if p.grad is None else numbers(p.grad) for p in parameters]
        optimizer.step()
        state = [
            {k: numbers(v) for k, v in optimizer.state[p].items() if v is not None}
            for p in parameters
        ]
        steps.append(
            {"grads": grads, "parameters": [numbers(p) for p in parameters], "state": state}
        )
    options = [{k: v for k, v in g.items()} for g in groups]
    return {
        "kind": kind,
        "groups": options,
        "dtype": str(dtype)[6:],
        "start": start,
        "steps": steps,
    }


def training():
    """Two layers, two groups of AdamW, two micro-batches a step, loss scale, clipping."""
    torch.manual_seed(11)
    dtype = torch.float64
    shapes = {"l1.weight": [4, 3], "l1.bias": [4], "l2.weight": [3, 4], "l2.bias": [3]}
    p = {n: torch.randn(s, dtype=dtype).requires_grad_() for n, s in shapes.items()}
    inputs = torch.randn(6, 5, 3, dtype=dtype)
    classes = torch.randint(0, 3, (6, 5))
    start = {n: numbers(t) for n, t in p.items()}
    optimizer = torch.optim.AdamW(
        [
            {"params": [p["l1.weight"], p["l2.weight"]], "weight_decay": 0.1},
            {"params": [p["l1.bias"], p["l2.bias"]], "weight_decay": 0.0, "lr": 0.05},
        ],
        lr=0.02,
        foreach=False,
    )
    steps = []
    for step in range(3):
        losses = []
        for micro in range(2):
            x, y = inputs[2 * step + micro], classes[2 * step + micro]
            hidden = F.gelu(F.linear(x, p["l1.weight"], p["l1.bias"]))
            loss = F.cross_entropy(F.linear(hidden, p["l2.weight"], p["l2.bias"]), y)
            losses.append(loss.item())
            (loss / 2 * 256.0).backward()
        for t in p.values():
            t.grad.mul_(1 / 256.0)
        grads = {n: numbers(t.grad) for n, t in p.items()}
        norm = torch.nn.utils.clip_grad_norm_(list(p.values()), 0.3, foreach=False).item()
        optimizer.step()
        optimizer.zero_grad()
        steps.append(
            {
                "losses": losses,
                "grads": grads,
                "norm": norm,
                "parameters": {n: numbers(t) for n, t in p.items()},
                "exp_avg_sq": {n: numbers(optimizer.state[t]["exp_avg_sq"]) for n, t in p.items()},
            }
        )
    return {
        "sizes": shapes,
        "start": start,
        "inputs": [numbers(x) for x in inputs],
        "classes": classes.tolist(),
        "steps": steps,
    }


cases = [updates(*case, torch.float64) for case in CASES]
cases += [updates(*CASES[i], d) for i in (1, 3, 6, 9) for d in (torch.float32, torch.bfloat16)]
json.dump({"torch": torch.__version__, "cases": cases, "training": training()}, sys.stdout)
