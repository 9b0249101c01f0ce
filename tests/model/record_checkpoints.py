# Writes recorded_checkpoints.jsonl: python record_checkpoints.py FILE, with PyTorch 2.11.0.
import json
import random
import sys
import warnings

import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)

def gen_steps(r, depth, state, in_r, budget):
    """A body: list of steps."""
    steps = []
    for _ in range(r.randint(1, 3)):
        kind = r.random()
        if depth > 0 and kind < 0.5:
            re = r.random() < 0.45
            label = "c%d" % state["labels"]; state["labels"] += 1
            inner = gen_steps(r, depth - 1, state, in_r or re, budget)
            if re and not has_op(inner): inner.append(["tanh"])
            steps.append(["ckpt", label, "R" if re else "N", r.random() < 0.75, inner])
        elif depth > 0 and kind < 0.58:
            steps.append(["fork", gen_steps(r, depth - 1, state, in_r, budget), gen_steps(r, depth - 1, state, in_r, budget)])
        else:
            ops = ["tanh", "sin", "lin", "lin", "mulp", "mulp"]
            if not in_r and state["penalties"]: ops += ["pen", "pen"]
            op = r.choice(ops)
            if op in ("lin", "mulp", "pen"):
                steps.append([op, r.randrange(2)])
            else:
                steps.append([op])
    return steps

def has_op(steps): return len(steps) > 0

class Run:
    def __init__(self, rec):
        self.rec = rec
        self.events = []
        self.params = {}
        for n, v in rec["params"].items():
            p = torch.tensor(v, requires_grad=True)
            p.register_post_accumulate_grad_hook(lambda _, n=n: self.events.append("acc:" + n))
            self.params[n] = p
    def steps(self, steps, t):
        for s in steps:
            t = self.step(s, t)
        return t
    def step(self, s, t):
        k = s[0]
        if k == "tanh": return torch.tanh(t)
        if k == "sin": return torch.sin(t)
        if k == "lin": return torch.nn.functional.linear(t, self.params["w%d" % s[1]], self.params["b%d" % s[1]])
        if k == "mulp": return t * self.params["p%d" % s[1]]
        if k == "fork": return self.steps(s[1], t) + self.steps(s[2], t)
        if k == "pen":
            u = t.detach().requires_grad_(True)
            y = torch.sin(u * self.params["p%d" % s[1]])
            g, = torch.autograd.grad(y.sum(), u, create_graph=True)
            return t + g
        if k == "ckpt":
            _, label, re, early, inner = s
            def body(b):
                self.events.append("+" + label)
                try:
                    out = self.steps(inner, b)
                except BaseException as e:
                    self.events.append("stop:" + label if type(e).__name__ == "_StopRecomputationError" else "exc:" + label)
                    raise
                self.events.append("-" + label)
                return out
            if re == "R":
                return checkpoint(body, t, use_reentrant=True)
            with set_checkpoint_early_stop(early):
                return checkpoint(body, t, use_reentrant=False)
        raise ValueError(k)
    def run(self):
        x = self.params["x"]
        out = self.steps(self.rec["steps"], x)
        loss = out.pow(2).sum()
        self.events.append("fwd")
        calls = self.rec["calls"]
        for i, c in enumerate(calls):
            last = i + 1 == len(calls)
            try:
                if c == "backward": loss.backward(retain_graph=not last)
                elif c == "inputs": loss.backward(inputs=[self.params["w0"], x], retain_graph=not last)
                else:
                    g = torch.autograd.grad(loss, [x], retain_graph=not last)
                self.events.append("bwd")
            except RuntimeError as e:
                self.events.append("error")
        return {n: (None if p.grad is None else p.grad.tolist()) for n, p in self.params.items()}

def uses(steps, kind):
    for s in steps:
        if s[0] == "ckpt":
            if s[2] == kind or uses(s[4], kind): return True
        if s[0] == "fork" and (uses(s[1], kind) or uses(s[2], kind)): return True
    return False
def uses_w0(steps):
    for s in steps:
        if s == ["lin", 0]: return True
        if s[0] == "ckpt" and uses_w0(s[4]): return True
        if s[0] == "fork" and (uses_w0(s[1]) or uses_w0(s[2])): return True
    return False

out = []
r = random.Random(20261121)
i = 0
errors = 0
while len(out) < 120:
    i += 1
    state = {"labels": 0, "penalties": r.random() < 0.4}
    steps = gen_steps(r, r.randint(1, 3), state, False, 0)
    if state["labels"] == 0 or state["labels"] > 9: continue
    def t(*s):
        if len(s) == 1: return [r.randint(-12, 12) / 8 for _ in range(s[0])]
        return [t(*s[1:]) for _ in range(s[0])]
    params = {"x": t(2, 2), "w0": t(2, 2), "b0": t(2), "w1": t(2, 2), "b1": t(2), "p0": t(2), "p1": t(2)}
    has_r = uses(steps, "R")
    kinds = ["backward"] * (8 if has_r else 2) + ["inputs", "grad"]
    calls = [r.choice(kinds) for _ in range(r.choice([1, 2, 2, 3]))]
    if "inputs" in calls and not uses_w0(steps): continue
    rec = {"steps": steps, "params": params, "calls": calls}
    run = Run(rec)
    try:
        grads = run.run()
    except Exception as e:
        print("skip", type(e), str(e)[:300].replace("\n"," "), file=sys.stderr); continue
    if "error" in run.events: errors += 1
    if len(run.events) > 160: continue
    rec["events"] = " ".join(run.events)
    rec["grads"] = grads
    out.append(json.dumps(rec, separators=(",", ":")))
open(sys.argv[1], "w").write("\n".join(out) + "\n")
