"""No observer ends or changes a job, neither by an exception of its own nor by its place."""

import json
import os
import subprocess
import sys

import support

RAISING = str(support.Path(__file__).with_name("raising_observers.py"))
COMPILED = str(support.JOBS / "compiled_job.py")
ERRORS = str(support.JOBS / "collective_errors_job.py")
# One of each part of the recorder, whatever version is installed.
PARTS = ("parameters", "graph_tasks", "graphs", "callbacks", "collectives", "collectives.works",
         "checkpoints.reentrant", "checkpoints.non_reentrant", "transforms.vmap", "autocast",
         "modules", "models", "model0", "optimizer.step", "optimizer.zero_grad", "step_counter",
         "window", "compiler", "ddp.buckets", "fsdp2.unshard", "model_facts")  # fmt: skip
PARTS_OF_DEEPSPEED = ("engines", "engines.init", "engines.step", "engine.forward", "grad_hooks",
                      "hook_manager.enter_backward", "zero12.copy_grads_in_partition",
                      "zero3.fetch_sub_module", "zero3.init.all_gather")  # fmt: skip


class HarmTest(support.RecordingTest):
    def launch(self, world, *arguments, recorded=None):
        """Runs a job under torch's launcher, with a detail of the recorder or without it."""
        port = str(support.free_port())
        env = dict(os.environ, DS_ACCELERATOR="cpu", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        env["PYTHONPATH"] = os.pathsep.join([str(support.RECORDER), str(support.JOBS)])
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(world)]
        command += ["--master_port", port]
        if recorded:
            command += ["-m", "zeroproof_recorder", "run", "--out", str(self.folder / recorded)]
            command += ["--detail", recorded]
        pipes = {"capture_output": True, "text": True, "check": False}
        ended = subprocess.run([*command, *arguments], env=env, timeout=1500, **pipes)
        self.assertEqual(ended.returncode, 0, ended.stderr[-3000:])
        return ended

    def results(self, word, world=2):
        """What each rank has written."""
        paths = [self.folder / f"{word}_r{rank}.json" for rank in range(world)]
        return [json.loads(path.read_text()) for path in paths]

    def check_notes(self, detail):
        """No observer has failed."""
        for path in (self.folder / detail).glob("*.jsonl.gz"):
            failed = [r["text"] for r in support.read(path) if "failed and is off" in str(r)]
            self.assertEqual(failed, [])

    def test_an_exception_in_each_observer_changes_nothing(self):
        ended = self.launch(1, RAISING, str(self.folder))
        found = json.loads(ended.stdout.splitlines()[-1])
        self.assertEqual(found["wrong"], {})
        parts = PARTS + (PARTS_OF_DEEPSPEED if support.has("deepspeed") else ())
        self.assertEqual(set(parts) - set(found["exercised"]), set())

    def test_errors_of_collectives_are_those_without_the_recorder(self):
        self.launch(2, ERRORS, str(self.folder / "plain"))
        self.launch(2, ERRORS, str(self.folder / "recorded"), recorded="full")
        self.check_notes("full")
        for plain, recorded in zip(self.results("plain"), self.results("recorded")):
            self.assertEqual(plain, recorded)
            self.assertGreater(sum("error" in outcome for outcome in plain.values()), 80)
            self.assertIn("modified by an inplace", plain["all_gather saved"]["error"])

    def test_compiled_code_is_neither_changed_nor_compiled_anew(self):
        self.launch(2, COMPILED, str(self.folder / "plain"))
        for detail in ("hooks", "full"):
            self.launch(2, COMPILED, str(self.folder / "recorded"), recorded=detail)
            self.check_notes(detail)
            for plain, recorded in zip(self.results("plain"), self.results("recorded")):
                for shape, result in plain.items():
                    self.assertEqual(result["same"], recorded[shape]["same"], (detail, shape))
        events = support.events(self.folder / "full" / "compiled_job__w2_r0.jsonl.gz")
        self.assertEqual(len([e for e in events if e["k"] == "gt.begin"]), len(plain) * 5)
        labels = [e["label"] for e in events if e["k"] == "mark"]
        self.assertIn("compiled_module:model", labels)
        self.assertEqual(labels.count("compiler.begin"), labels.count("compiler.end"))


if __name__ == "__main__":
    support.unittest.main()
