#!/usr/bin/env python3
"""What of bench/cuda can be tested without a GPU: scripts_test.py ZEROPROOF

The judgement of loss curves, the ratios of beside_torch.py, the lines of hook_pairs.py; and ours beside torch's DDP on the
CPU, where a Python with PyTorch and torch_baseline.py are there ($TORCH_PYTHON, /opt/torch; $BENCH, ../shared).
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZEROPROOF = sys.argv.pop(1) if len(sys.argv) > 1 else ""
TORCH = os.environ.get("TORCH_PYTHON", "/opt/torch/bin/python3")
BENCH = os.environ.get("BENCH", str(ROOT.parent / "shared" / "prototype" / "bench"))


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / "cuda" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class LossCurves(unittest.TestCase):
    torchs = {"eager": [5.0, 4.0, 3.0], "compiled": [5.0, 4.01, 3.0], "eager again": [5.0, 4.0, 3.0]}

    def test_a_run_within_three_times_the_difference_of_torch_holds(self):
        rows, held = script("loss_curves").judge(2, {"stage 1": [5.0, 4.0, 3.02]}, self.torchs)
        self.assertTrue(held, rows)
        self.assertIn("0.010000 at step 1", rows[0])

    def test_one_further_off_fails_and_so_does_one_that_is_missing(self):
        loss_curves = script("loss_curves")
        self.assertFalse(loss_curves.judge(2, {"stage 1": [5.0, 4.0, 3.04]}, self.torchs)[1])
        self.assertFalse(loss_curves.judge(2, {"stage 1": None}, self.torchs)[1])
        self.assertFalse(loss_curves.judge(2, {"stage 1": [5.0, 4.0, 3.0]}, {"eager": [5.0, 4.0, 3.0]})[1])

    def test_the_first_state_is_what_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "initial.safetensors"
            command = [ZEROPROOF, "train", "--model", "tiny", "--batch", "3", "--length", "8", "--steps", "1", "--world-size", "2"]
            subprocess.run([*command, "--save-initial", str(path)], check=True, capture_output=True)
            state = script("loss_curves").read_safetensors(path)
        self.assertEqual(state["batches.ids"][:2], ("I32", [4, 6, 8]))
        self.assertEqual(state["layers.1.w1.weight"][:2], ("F32", [256, 128]))
        self.assertEqual(len(state), 2 + 15)
        ids = memoryview(state["batches.ids"][2]).cast("i")
        self.assertTrue(0 <= min(ids) and max(ids) < 512 and len(set(ids)) > 100)
        self.assertEqual(set(memoryview(state["final_norm.weight"][2]).cast("f")), {1.0})
        matrix = memoryview(state["lm_head.weight"][2]).cast("f")
        deviation = (sum(value * value for value in matrix) / len(matrix)) ** 0.5
        self.assertAlmostEqual(deviation, 0.02, delta=0.0005)

    @unittest.skipUnless(pathlib.Path(TORCH).exists() and pathlib.Path(BENCH).exists(), "needs PyTorch and its baseline")
    def test_ours_on_the_host_has_the_curve_of_ddp_on_the_cpu(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [TORCH, str(ROOT / "bench" / "cuda" / "loss_curves.py"), ZEROPROOF, "--bench", BENCH, "--model", "tiny"]
            command += ["--steps", "6", "--batch", "2", "--length", "16", "--stages", "2", "--backend", "eager", "--out", folder]
            done = subprocess.run(command, capture_output=True, text=True)
            curves = json.loads((pathlib.Path(folder) / "curves.json").read_text())
        for gpus, of in curves.items():
            for name, ours in of["ours"].items():
                for left, right in zip(ours, of["torch"]["eager"], strict=True):
                    self.assertAlmostEqual(left, right, delta=2e-5, msg=f"{gpus} {name}: {done.stdout}")
            self.assertGreater(ours[0] - ours[4], 0.01)  # it learns, and a turn later sees the same batch


class BesideTorch(unittest.TestCase):
    def rows(self):
        graph = [{"stage": stage, "gpus": 2 if stage else 1, "length": 1024, "ms": ms, "memory": 1.05, "is_cut": False, "is_graph": True}
                 for stage, ms in ((0, 30.0), (1, 30.0), (2, 45.0), (3, 31.0))]
        bare = [dict(row, ms=row["ms"] * (1.04 if row["stage"] < 3 else 1.2), is_graph=False) for row in graph]
        cut = [dict(row, ms=29.9, is_cut=True) for row in graph if row["stage"]]
        torchs = [{"engine": f"torch {name}", "gpus": 2, "length": 1024, "ms": ms, "is_torch": True}
                  for name, ms in (("flatzero1 block graph=1", 50.0), ("ddp block", 60.0), ("fsdp2tuned block graph=1", 52.0), ("fsdp2zero2 block", 35.0), ("single block", 10.0))]
        return graph + bare + cut + torchs

    def test_every_demand_is_judged(self):
        nccl = [{"engine": "nccl", "rows": [{"bytes": 533825536, "reduce_scatter": {"us": 1000.0}, "all_gather": {"us": 1000.0}}]}]
        lines = script("beside_torch").demands(self.rows(), nccl, 2)
        said = {line[9:].rsplit(":", 1)[0].split(" (exposed")[0]: line.split()[0] for line in lines}
        wanted = {"stage 1 / best torch engine": "MISSED",  # of 35: one that trains alone is no rival
                  "stage 2 / best torch engine": "MISSED", "stage 3 / best FSDP2": "met",  # which partitions weights
                  "stage 1: without a graph / with one": "met", "stage 3: without a graph / with one": "MISSED",
                  "weak scaling 1 to 2, stage 1": "met", "weak scaling 1 to 2, stage 2": "MISSED",
                  "overlap efficiency, stage 1": "met", "overlap efficiency, stage 2": "MISSED", "peak memory / formula, stage 3": "met"}
        self.assertEqual({name: said["S 1024 " + name] for name in wanted}, wanted)

    def test_what_was_not_measured_is_not_run(self):
        rows = [row for row in self.rows() if not row.get("is_cut") and not row.get("is_torch")]
        lines = script("beside_torch").demands(rows, [], 2)
        self.assertEqual({line.split()[0] for line in lines if "torch" in line or "FSDP2" in line or "overlap" in line}, {"not"})

    def test_the_plan_begins_with_the_tuned_engines_as_graphs(self):
        plan = script("beside_torch").torch_plan(4, [1024, 512], False)
        self.assertEqual([row["id"] for row in plan], list(range(len(plan))))
        graphs = [(row["engine"], row["seq"]) for row in plan if row.get("graph")]
        self.assertEqual(graphs[:3], [("flatzero1", 1024), ("fsdp2zero2", 1024), ("fsdp2tuned", 1024)])
        self.assertIn(("fsdp2tuned", 512), graphs)
        self.assertTrue(all(row["id"] < 11 for row in plan if row.get("graph")))


class HookPairs(unittest.TestCase):
    def test_a_difference_counts_beyond_the_spread_alone(self):
        line_of = script("hook_pairs").line_of
        self.assertIn("within the spread", line_of(147, {"exact": [30.0, 31.0], "deepspeed-0.18.5": [31.0, 30.5]}))
        self.assertIn("2.00 ns a check", line_of(1000, {"exact": [30.0, 30.1], "deepspeed-0.18.5": [32.0, 32.1]}))


if __name__ == "__main__":
    unittest.main()
