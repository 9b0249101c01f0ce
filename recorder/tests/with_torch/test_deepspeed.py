"""DeepSpeed, stages 0 to 3, on gloo."""

import os
import subprocess
import sys
import unittest

import support

IDENTITY = """
import sys
import deepspeed
import torch
import zeroproof_recorder
from deepspeed_job import make_engine, models
from job import batch, begin

rank, _ = begin()
out = sys.argv[1]


def train(engine):
    numbers = []
    for step in range(3):
        loss = engine(batch(step, rank))
        engine.backward(loss)
        engine.step()
        numbers.append(loss.detach().numpy().tobytes())
    params = list(engine.module.parameters())
    sharded = [param for param in params if hasattr(param, "ds_id")]
    with deepspeed.zero.GatheredParameters(sharded):  # a shard ends in memory that was never set
        return numbers + [param.detach().numpy().tobytes() for param in params]


def hooks(engine):
    found = [dict(p._post_accumulate_grad_hooks or {}) for p in engine.module.parameters()]
    found.append(list(getattr(engine.optimizer, "_grad_acc_post_hooks", ())))
    found.append([vars(type(part)).copy() for part in (engine, engine.optimizer)])
    return found


for stage in range(4):
    expected = None
    for detail in (None, *sys.argv[2:]):
        torch.manual_seed(7)
        engine = make_engine(models.Checkpointed(True), stage)
        if detail is None:
            expected = train(engine)
            continue
        before = hooks(engine)
        options = {"detail": "full", "numbers": True} if detail == "numbers" else {"detail": detail}
        options["program"] = "identity" if detail == "numbers" else f"{detail}{stage}"
        with zeroproof_recorder.record(engine=engine, out=out, quiet=True, **options):
            found = train(engine)
        assert hooks(engine) == before, f"stage {stage}, {detail}: hooks were left behind"
        assert found == expected, f"stage {stage}, {detail}: numbers differ"
"""


@unittest.skipUnless(support.has("deepspeed"), "DeepSpeed is not installed")
class DeepspeedTest(support.RecordingTest):
    def run_python(self, world, *arguments):
        env = dict(os.environ, DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        env["PYTHONPATH"] = os.pathsep.join([str(support.RECORDER), str(support.JOBS)])
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(world)]
        ended = subprocess.run(
            [*command, *arguments],
            env=env,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stderr[-3000:])

    def find(self, scenario, stage, rank=0):
        pattern = f"*_{scenario}__z{stage}_fp32_w2_r{rank}.jsonl.gz"
        return support.events(self.trace(pattern))

    def test_scenarios_of_two_ranks(self):
        suite = str(support.JOBS / "deepspeed_suite.py")
        scenarios = ["mlp:0123", "ckpt_reentrant_manual:23", "exception_recovery:1"]
        self.run_python(2, suite, str(self.folder), "engine", *scenarios)
        for stage in range(4):
            with self.subTest(stage=stage):
                self.check_mlp(stage)
        for stage in (2, 3):
            with self.subTest(stage=stage, manual=True):
                self.check_manual(self.find("ckpt_reentrant_manual", stage))
        failed = self.find("exception_recovery", 1)
        depths = [e["state"]["backward_active_depth"] for e in failed if e["k"] == "bhs.return"]
        self.assertGreater(min(depths[-3:]), 0)  # it never comes back to zero

    def check_mlp(self, stage):
        found = self.find("mlp", stage)
        header = support.read(self.trace(f"*_mlp__z{stage}_fp32_w2_r0.jsonl.gz"))[0]
        self.assertEqual((header["stage"], header["dtype"]), (stage, "fp32"))
        self.assertEqual(len(support.words(found, "param.post_acc")), 8)
        self.assertEqual(len([e for e in found if e["k"] == "opt.step"]), 2)
        if stage:
            hooks = [e for e in found if e.get("method") == "grad_hook"]
            self.assertEqual(len(hooks), 16)
            self.assertTrue(all("state" in e for e in found if e["k"].startswith("bhs.")))
            self.assertTrue([e for e in found if e["k"] == "bucket.flush"])
        if stage == 3:
            ends = [e for e in found if e["k"] == "zparam.partition"]
            self.assertEqual(ends[-1]["live_numel"], 0)
        other = self.find("mlp", stage, rank=1)
        issues = [
            [(e["key"], e["op"]) for e in f if e["k"] == "coll.issue"] for f in (found, other)
        ]
        self.assertEqual(*issues)

    def check_manual(self, found):
        """The epilogue of a manual backward runs in the callback of the outermost task."""
        begin = next(e for e in found if e["k"] == "cb.begin")
        epilogue = next(e for e in found if e.get("method") == "engine.backward_epilogue")
        end = next(e for e in found if e["k"] == "cb.end")
        self.assertTrue(begin["lc"] < epilogue["lc"] < end["lc"])
        outermost = next(e for e in found if e["k"] == "gt.begin")
        self.assertEqual(begin["gt"], outermost["gt"])

    def test_numbers_are_bitwise_equal_and_hooks_are_put_back(self):
        script = self.folder / "identity.py"
        script.write_text(IDENTITY)
        self.run_python(2, str(script), str(self.folder), "hooks", "engine", "full")
        traces = list(self.folder.glob("*.jsonl.gz"))
        self.assertEqual(len(traces), 4 * 3 * 2)
        for path in traces:
            notes = [r["text"] for r in support.read(path) if r["rec"] == "note"]
            self.assertFalse([text for text in notes if "failed" in text or "not obs" in text])

    def test_facts_and_numbers_change_nothing(self):
        script = self.folder / "identity.py"
        script.write_text(IDENTITY)
        self.run_python(1, str(script), str(self.folder), "numbers")
        for stage in range(4):
            with self.subTest(stage=stage):
                records = support.read(self.trace(f"identity__z{stage}_fp32_w1_r0.jsonl.gz"))
                self.check_facts(stage, records)

    def check_facts(self, stage, records):
        wrapper, optimizer = (
            [r for r in records if r["rec"] == rec] for rec in ("wrapper", "optimizer")
        )
        self.assertEqual([(r["kind"], r["size"]) for r in wrapper], [("deepspeed", 1)])
        self.assertEqual([(r["engine"], r["unknown"]) for r in optimizer], [(0, 0)])
        names = {r["name"] for r in records if r["rec"] == "param"}
        self.assertEqual(set(optimizer[0]["params"]), names)
        numbers = [r for r in records if r["rec"] == "numbers"]
        self.assertEqual([r["step"] for r in numbers], [0, 0, 1, 1, 2, 2])
        for before, after in zip(numbers[::2], numbers[1::2]):
            self.assertEqual(before.get("partial_grads", False), stage > 0)
            self.assertNotIn(None, before["grad_hash"] + before["param_hash"])
            self.assertNotEqual(before["param_hash"], after["param_hash"])
        self.assertEqual(numbers[1]["param_hash"], numbers[2]["param_hash"])

    def test_an_engine_is_found_by_run(self):
        script = str(support.JOBS / "deepspeed_job.py")
        run = ("--steps", "1:2", "--program", "found")
        self.run_job(script, "mlp", "3", run=run)
        found = support.events(self.trace("found__z3_fp32_w1_r0.jsonl.gz"))
        self.assertEqual(next(e["label"] for e in found if e["k"] == "mark"), "recorded_step:1")
        self.assertEqual(len(support.words(found, "param.post_acc")), 4)
        self.assertEqual(len([e for e in found if e["k"] == "opt.step"]), 1)


if __name__ == "__main__":
    support.unittest.main()
