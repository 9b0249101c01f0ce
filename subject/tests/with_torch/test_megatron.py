"""Megatron-core trains as plain PyTorch does, and what is known of it is found. For 0.16.1."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
from documents import STEP, backward, document, forward
from zeroproof_subject.subject import Comparison, Subject

PROGRAMS = Path(__file__).resolve().parents[1] / "programs.jsonl"
ZERO_GRAD = {"zero_grad": {"engine": "a"}}
ONE = [forward("g"), backward("g")]
NO_SYNC = {"block": {"engine": "a", "kind": "no_sync", "body": ONE}}
SAVE = {"save": {"engine": "a", "tag": "t"}}
LOAD = {"load": {"engine": "a", "tag": "t"}}
THREE_PARAMETERS = [
    {"name": "l0", "linear": {"inputs": 1, "outputs": 2, "has_bias": True}},
    {"name": "l1", "custom": {"shape": [2]}},
]
EXTERNAL = [
    {"name": "l0", "linear": {"inputs": 1, "outputs": 1}},
    {"name": "l1", "external_use": {"module": "l0"}},
]


def has_megatron():
    if importlib.util.find_spec("megatron") is None:
        return False
    return Subject("megatron", {}).versions()["megatron-core"].startswith("0.16.1")


def drawn(**config):
    """Adam alone: the distributed optimizer takes no other."""
    programs = [json.loads(line)["program"] for line in PROGRAMS.read_text().splitlines()]
    of_adam = [it for it in programs if it["config"].get("optimizer", {}).get("type") != "SGD"]
    return [{**it, "config": {**it["config"], **config}} for it in of_adam]


def small(body, **config):
    return document(ranks=2, config=config, body=body)


@unittest.skipUnless(has_megatron(), "no megatron-core 0.16.1")
class MegatronTest(unittest.TestCase):
    def compare(self, programs, **options):
        comparison = Comparison(Subject("megatron", options))
        self.addCleanup(comparison.end)
        return [comparison.run(program) for program in programs]

    def assert_equal(self, programs, **options):
        verdicts = self.compare(programs, **options)
        self.assertEqual([it.difference for it in verdicts], [None] * len(programs), options)

    def assert_known(self, name, program, **options):
        (verdict,) = self.compare([program], **options)
        self.assertIsNotNone(verdict.known, verdict.difference)
        self.assertEqual(verdict.known.id, f"megatron.{name}")

    def test_drawn_programs_train_as_plain_pytorch(self):
        for options in ({}, {"use_distributed_optimizer": False}, {"overlap_param_gather": True}):
            with self.subTest(options):
                self.assert_equal(drawn(), **options)

    def test_16_bit_models_train_as_plain_pytorch(self):
        for kind in ("bf16", "fp16"):
            config = {kind: {"enabled": True, **({"loss_scale": 16.0} if kind == "fp16" else {})}}
            program = small([*ONE, STEP, *ONE, STEP], gradient_accumulation_steps=2, **config)
            with self.subTest(kind):
                self.assert_equal([program])
                self.assert_equal([program], use_distributed_optimizer=False)

    def test_windows_are_reduced_once_where_reductions_overlap(self):
        # Later windows have another number of backwards before the last micro-batch.
        windows = [*ONE, STEP, *ONE, STEP, *ONE, *ONE, STEP, *ONE, STEP]
        blocks = [NO_SYNC, *ONE, STEP, NO_SYNC, NO_SYNC, *ONE, STEP]
        programs = [small(windows, gradient_accumulation_steps=2), small(blocks)]
        for is_distributed in (False, True):
            self.assert_equal(
                programs, overlap_grad_reduce=True, use_distributed_optimizer=is_distributed
            )

    def test_a_checkpoint_brings_everything_back(self):
        program = small([*ONE, STEP, SAVE, *ONE, STEP, LOAD, *ONE, STEP])
        self.assert_equal([program], use_distributed_optimizer=False)

    def test_a_checkpoint_of_the_distributed_optimizer_is_not_loaded(self):
        program = document(ranks=2, modules=THREE_PARAMETERS, body=[*ONE, STEP, SAVE, LOAD])
        self.assert_known("load_of_fp32", program)
        of_bf16 = {**program, "config": {**program["config"], "bf16": {"enabled": True}}}
        self.assert_known("load_of_torch_adam", of_bf16)
        self.assert_known("state_dict_without_state", small([SAVE]))

    def test_a_backward_more_than_in_the_first_window_is_lost(self):
        body = [*ONE, STEP, *ONE, *ONE, STEP]
        self.assert_known("backwards_of_first_window", small(body), overlap_grad_reduce=True)
        self.assert_equal([small(body)])

    def test_zero_grad_does_not_wait_for_a_reduction(self):
        body = [*ONE, STEP, *ONE, ZERO_GRAD, STEP]
        self.assert_known("zero_grad_of_reduction", small(body), overlap_grad_reduce=True)
        self.assert_equal([small(body)])

    def test_a_window_without_a_backward_is_refused(self):
        self.assert_known(
            "bucket_without_gradients", small([*ONE, STEP, STEP]), overlap_grad_reduce=True
        )

    def test_a_load_mixes_parameter_groups(self):
        program = document(ranks=2, modules=THREE_PARAMETERS, body=[SAVE, LOAD])
        program["engines"][0]["parameter_groups"] = 2
        self.assert_known("groups_at_load", program, use_distributed_optimizer=False)

    def test_a_weight_is_old_where_its_module_does_not_run(self):
        body = [*ONE, STEP, forward("h", skips=[{"module": "l0"}])]
        config = {"optimizer": {"type": "Adam", "params": {"lr": 0.125}}}
        program = document(ranks=2, config=config, modules=EXTERNAL, body=body)
        self.assert_known("gather_by_owner", program, overlap_param_gather=True)
        self.assert_equal([program])

    def test_stand_ins_are_in_ranks_of_megatron_alone(self):
        self.assert_equal([small([*ONE, STEP])])
        self.assertFalse(hasattr(torch.Tensor.type, "of_cpu"))

    def test_a_script_shows_a_difference_and_its_cause(self):
        config = {"optimizer": {"type": "SGD", "params": {}}, "gradient_clipping": 0.75}
        body = [*ONE, STEP, *ONE, *ONE, STEP]
        program = document(ranks=2, config=config, modules=THREE_PARAMETERS, body=body)
        program["engines"][0]["parameter_groups"] = 2
        options = {"overlap_grad_reduce": True, "use_distributed_optimizer": False}
        comparison = Comparison(Subject("megatron", options))
        self.addCleanup(comparison.end)
        text = comparison.script(program)
        self.assertNotIn("import zeroproof", text)
        self.assertEqual(run(text)[0], 1)
        code, printed = run(text.replace("overlap_grad_reduce=True, ", ""))
        self.assertEqual(code, 0, printed)


def run(text):
    """The script's exit code and what it prints, with Megatron-core alone on the path."""
    site = Path(next(iter(importlib.util.find_spec("megatron").submodule_search_locations))).parent
    environment = {**os.environ, "PYTHONPATH": str(site)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "finding.py"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, path], env=environment, capture_output=True, text=True, timeout=600
        )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    unittest.main()
