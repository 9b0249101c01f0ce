"""Writes the traces of a made-up stage-3 run, one a rank: large_run.py FOLDER RANKS EVENTS

EVENTS are those of all ranks together, at least. For measuring readers and pages.
"""

import json
import sys


class Rank:
    def __init__(self, path, rank, ranks):
        self.file = open(path, "w", encoding="utf-8")
        self.rank, self.lc, self.time = rank, 0, 1000 * rank
        self.records, self.numbers = 0, 0
        self.write(rec="header", format="hooktrace", version=[1, 0], rank=rank, world=ranks,
                   clock={"unit": "ns", "source": "CLOCK_MONOTONIC", "mono0": 0, "unix0": 1700000000000000000},
                   producer={"tool": "large_run.py"}, program="large_run", desc="a made-up run of stage 3",
                   stage=3, dtype="bf16")
        self.record(rec="thread", th=0, name="MainThread", main=True)
        self.record(rec="thread", th=1, name="autograd", main=False)
        self.record(rec="group", name="world", ranks=list(range(ranks)))

    def write(self, **fields):
        self.file.write(json.dumps(fields, separators=(",", ":")) + "\n")

    def record(self, **fields):
        self.records += 1
        self.write(**fields)

    def event(self, kind, thread, task, **fields):
        self.lc += 1
        self.time += 700 + (self.lc * 7919 + self.rank * 104729) % 9000
        self.record(rec="ev", lc=self.lc, t=self.time, r=self.rank, th=thread, k=kind, gt=task,
                    d=0 if task < 0 else 1, **fields)

    def collective(self, op, thread, task, size):
        key = {"op": op, "cseq": self.numbers, "key": f"world:{self.numbers}", "group": "world"}
        self.numbers += 1
        self.event("coll.issue", thread, task, **key, bytes=size, **{"async": True})
        return key

    def gather(self, module, thread, task, forward):
        params = [f"{module}.weight", f"{module}.bias"]
        self.event("zmod.fetch", thread, task, module=module, forward=forward)
        self.event("zparam.gather_begin", thread, task, params=params, forward=forward)
        key = self.collective("all_gather_into_tensor", thread, task, 4096)
        self.event("coll.complete", thread, task, **key, **{"async": True})
        self.event("zparam.gather_end", thread, task, params=params, live_numel=2048)
        return params

    def release(self, module, params, thread, task, forward):
        self.event("zmod.release", thread, task, module=module, forward=forward)
        self.event("zparam.partition", thread, task, params=params, live_numel=0)

    def step(self, number, layers):
        self.event("engine.call", 0, -1, method="engine.forward", engine=0, gstep=number)
        for layer in layers:
            params = self.gather(layer, 0, -1, True)
            self.event("module.fwd_pre", 0, -1, module=layer)
            self.event("module.fwd_post", 0, -1, module=layer)
            self.release(layer, params, 0, -1, True)
        self.event("engine.return", 0, -1, method="engine.forward")
        self.event("engine.call", 0, -1, method="engine.backward", engine=0, gstep=number)
        self.event("gt.begin", 0, number, call=number, api="backward")
        self.event("engine.call", 1, number, method="engine.backward_prologue", engine=0)
        self.event("cb.queue", 1, number, label=f"post_backward:{number}")
        self.event("engine.return", 1, number, method="engine.backward_prologue")
        for layer in reversed(layers):
            self.backward(layer, number)
        self.event("cb.begin", 1, number, label=f"post_backward:{number}")
        self.event("engine.call", 1, number, method="engine.backward_epilogue", engine=0)
        self.event("bucket.flush", 1, number, params=[f"{layer}.weight" for layer in layers])
        key = self.collective("reduce_scatter_tensor", 1, number, 65536)
        self.event("coll.complete", 1, number, **key, **{"async": True})
        self.event("engine.return", 1, number, method="engine.backward_epilogue")
        self.event("cb.end", 1, number, label=f"post_backward:{number}")
        self.event("gt.end", 0, number, call=number)
        self.event("engine.return", 0, -1, method="engine.backward")
        self.event("engine.call", 0, -1, method="engine.step", engine=0)
        self.event("opt.step", 0, -1, gstep=number)
        self.event("engine.return", 0, -1, method="engine.step")

    def backward(self, layer, task):
        params = self.gather(layer, 1, task, False)
        for param in params:
            self.event("param.post_acc", 1, task, param=param)
            self.event("engine.call", 1, task, method="grad_hook", param=param)
            self.event("bucket.add", 1, task, param=param, numel=1024)
            self.event("engine.return", 1, task, method="grad_hook", param=param)
        self.release(layer, params, 1, task, False)

    def finish(self):
        self.write(rec="end", events=self.lc, records=self.records)
        self.file.close()


def main(folder, ranks, events):
    layers = [f"h.{i}" for i in range(12)]
    runs = [Rank(f"{folder}/large_run_r{rank}.jsonl", rank, ranks) for rank in range(ranks)]
    number = 0
    while sum(run.lc for run in runs) < events:
        for run in runs:
            run.step(number, layers)
        number += 1
    for run in runs:
        run.finish()
    print(sum(run.lc for run in runs), "events")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
