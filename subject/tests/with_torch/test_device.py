"""Models compute where their inputs are: a recompute runs in a thread without a default device."""

import json
import unittest
from pathlib import Path
from unittest import mock

import torch
from zeroproof_subject import device
from zeroproof_subject.contributions import MOST, Contributions
from zeroproof_subject.models import ACTIVATIONS, Root, losses_of
from zeroproof_subject.program import parse

PROGRAMS = Path(__file__).resolve().parents[1] / "programs.jsonl"


class DeviceTest(unittest.TestCase):
    def test_every_tensor_of_a_model_follows_its_inputs(self):
        """On the meta device, which refuses tensors of another one."""
        for line in PROGRAMS.read_text().splitlines():
            program = parse(json.loads(line)["program"])
            for model in program.models.values():
                root = Root(model).to("meta")
                data = Contributions(program.seed, "a", 0, 0, most=MOST[program.dtype])
                outputs = root(torch.zeros(ACTIVATIONS, device="meta"), data)
                for name, value in losses_of(model, outputs).items():
                    self.assertEqual("meta", value.device.type, f"{model.name}{name}")

    def test_a_group_is_on_gpus_where_each_rank_has_one(self):
        with mock.patch.object(device, "gpus", return_value=2):
            self.assertEqual(["cuda", "cuda", "cpu"], [device.kind(ranks) for ranks in (1, 2, 3)])
            self.assertEqual([1, 2], device.worlds([1, 2, 3, 4]))
        with mock.patch.object(device, "gpus", return_value=0):
            self.assertEqual("cpu", device.kind(1))
            self.assertEqual([1, 2], device.worlds([1, 2]))


if __name__ == "__main__":
    unittest.main()
