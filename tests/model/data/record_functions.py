"""Numbers and node names of real PyTorch (2.11.0) for functions_gradient_test.cpp.

  python record_functions.py > functions.json

Each case: inputs, output, gradients of the weighted sum of the output, gradients of a penalty made
of first gradients, the nodes that lead to the output, and outputs in narrower types.
"""
import json
import sys

import torch
import torch.nn.functional as F

CLASSES = torch.tensor([2, 0, 1])
IGNORED = torch.tensor([2, -100, 1])
ROWS = torch.tensor([[1, 3], [0, 1]])
PICKED = torch.tensor([2, 0, 2])
GATHERED = torch.tensor([[0, 2], [3, 3], [1, 0]])
MASK = torch.tensor([[True, False, False, True]])


def attention(q, k, v, causal):
    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, is_causal=causal)[0]


M, W, V4 = [3, 4], [4], [5, 4]
LOSS = [M, M]
CASES = {
    "mean": ([M], lambda x: x.mean()),
    "mean_dims": ([[2, 3, 2]], lambda x: x.mean((0, 2))),
    "mean_keepdim": ([M], lambda x: x.mean(1, keepdim=True)),
    "erf": ([M], lambda x: torch.erf(x)),
    "rsqrt": ([M], lambda x: torch.rsqrt(x * x + 1)),
    "sigmoid": ([M], torch.sigmoid),
    "silu": ([M], F.silu),
    "gelu": ([M], F.gelu),
    "gelu_tanh": ([M], lambda x: F.gelu(x, approximate="tanh")),
    "softmax": ([M], lambda x: F.softmax(x, 1)),
    "softmax_first": ([M], lambda x: F.softmax(x, 0)),
    "log_softmax": ([M], lambda x: F.log_softmax(x, 1)),
    "embedding": ([V4], lambda w: F.embedding(ROWS, w)),
    "layer_norm": ([M, W, W], lambda x, w, b: F.layer_norm(x, (4,), w, b)),
    "layer_norm_plain": ([M], lambda x: F.layer_norm(x, (4,))),
    "layer_norm_two": ([[2, 2, 3], [2, 3]], lambda x, w: F.layer_norm(x, (2, 3), w, None, 0.1)),
    "rms_norm": ([M, W], lambda x, w: F.rms_norm(x, (4,), w, 1e-5)),
    "rms_norm_plain": ([M], lambda x: F.rms_norm(x, (4,), None, 0.1)),
    "mse_loss": (LOSS, F.mse_loss),
    "mse_loss_sum": (LOSS, lambda x, y: F.mse_loss(x, y, reduction="sum")),
    "mse_loss_none": (LOSS, lambda x, y: F.mse_loss(x, y, reduction="none")),
    "l1_loss": (LOSS, F.l1_loss),
    "l1_loss_sum": (LOSS, lambda x, y: F.l1_loss(x, y, reduction="sum")),
    "nll_loss": ([M], lambda x: F.nll_loss(x, CLASSES)),
    "nll_loss_none": ([M], lambda x: F.nll_loss(x, IGNORED, reduction="none")),
    "cross_entropy": ([M], lambda x: F.cross_entropy(x, CLASSES)),
    "cross_entropy_ignored": ([M], lambda x: F.cross_entropy(x, IGNORED)),
    "cross_entropy_sum": ([M], lambda x: F.cross_entropy(x, IGNORED, reduction="sum")),
    "index_select": ([M], lambda x: x.index_select(1, PICKED)),
    "index_add": ([M, [3, 3]], lambda x, s: x.index_add(1, PICKED, s)),
    "gather": ([M], lambda x: x.gather(1, GATHERED)),
    "scatter_add": ([M, [3, 2]], lambda x, s: x.scatter_add(1, GATHERED, s)),
    "topk": ([M], lambda x: x.topk(2, 1)[0]),
    "max": ([M], lambda x: x.max(0)[0]),
    "masked_fill": ([M], lambda x: x.masked_fill(MASK, -1.5)),
    "where": (LOSS, lambda x, y: torch.where(MASK, x, y)),
    "attention": ([[2, 2, 3, 4]] * 3, lambda q, k, v: attention(q, k, v, False)),
    "attention_causal": ([[2, 2, 3, 4]] * 3, lambda q, k, v: attention(q, k, v, True)),
}
HAS_COMPOSED_NODES = {"rsqrt", "attention", "attention_causal"}


def node_names(fn):
    if fn is None or "AccumulateGrad" in fn.name():
        return None
    return [fn.name()] + [node_names(child) for child, _ in fn.next_functions]


def weights_like(out):
    return (0.7 + 0.31 * torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)


def penalty(fn, inputs):
    first = (fn(*inputs) ** 2).sum()
    grads = torch.autograd.grad(first, inputs, create_graph=True)
    return first + sum((g**2).sum() for g in grads)


def record(name, shapes, fn):
    generator = torch.Generator().manual_seed(len(name) * 7 + sum(map(ord, name)))
    # Of float32's precision, so that narrower types round the same numbers.
    inputs = [
        torch.randn(s, generator=generator, dtype=torch.float32).double().requires_grad_()
        for s in shapes
    ]
    out = fn(*inputs)
    case = {
        "name": name,
        "inputs": [{"sizes": list(x.shape), "values": x.flatten().tolist()} for x in inputs],
        "output": {"sizes": list(out.shape), "values": out.flatten().tolist()},
        "nodes": None if name in HAS_COMPOSED_NODES else node_names(out.grad_fn),
    }
    grads = torch.autograd.grad((out * weights_like(out)).sum(), inputs)
    case["grads"] = [g.flatten().tolist() for g in grads]
    grads = torch.autograd.grad(penalty(fn, inputs), inputs)
    case["penalty_grads"] = [g.flatten().tolist() for g in grads]
    case["narrow"] = {}
    for dtype in (torch.float32, torch.bfloat16):
        narrow = fn(*[x.detach().to(dtype) for x in inputs])
        case["narrow"][str(dtype)[6:]] = narrow.double().flatten().tolist()
    return case


def rounding():
    generator = torch.Generator().manual_seed(1)
    exponent = torch.randint(-30, 20, (200,), generator=generator)
    values = torch.ldexp(torch.randn(200, generator=generator), exponent)
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.0, 65520.0, 2.0**-25]
    values = torch.cat([values, torch.tensor(ties)])
    wide = torch.randn(100, generator=generator, dtype=torch.float64)
    return {
        "values": values.double().tolist(),
        "bfloat16": values.bfloat16().double().tolist(),
        "float16": [v if abs(v) < 1e6 else None for v in values.half().double().tolist()],
        "wide": wide.tolist(),
        "float32": wide.float().double().tolist(),
    }


json.dump(
    {
        "torch": torch.__version__,
        "cases": [record(name, *case) for name, case in CASES.items()],
        "rounding": rounding(),
    },
    sys.stdout,
)
