"""Rank, world size and file names."""

import unittest

from zeroproof_recorder.place import Place, program_name, trace_name

ENVIRONMENTS = [
    ({}, Place(0, 1)),
    ({"RANK": "3", "WORLD_SIZE": "8"}, Place(3, 8)),
    ({"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "1"}, Place(0, 2, 1)),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, Place(1, 4)),
    ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, Place(5, 16)),
    ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, Place(1, 2)),
    ({"RANK": "3"}, Place(0, 1)),  # half a launcher is none
    ({"RANK": "8", "WORLD_SIZE": "8"}, Place(0, 1)),
    ({"RANK": "x", "WORLD_SIZE": "8"}, Place(0, 1)),
]
PROGRAMS = [
    ("train.py", "train"),
    ("/a/b/train_gpt.py", "train_gpt"),
    ("my train.py", "my_train"),
    ("a__b.py", "a_b"),  # two underscores end the program in a file name
    ("", "job"),
    ("-c", "c"),
]


class PlaceTest(unittest.TestCase):
    def test_launchers_are_understood(self):
        for environment, place in ENVIRONMENTS:
            with self.subTest(environment=environment):
                self.assertEqual(Place.of_environment(environment), place)

    def test_program_names_are_safe_in_file_names(self):
        for script, program in PROGRAMS:
            with self.subTest(script=script):
                self.assertEqual(program_name(script), program)

    def test_file_names_are_those_that_readers_group_by(self):
        self.assertEqual(trace_name("t", Place(1, 2), None, None), "t__w2_r1.jsonl.gz")
        self.assertEqual(trace_name("t", Place(0, 1), 3, "bf16"), "t__z3_bf16_w1_r0.jsonl.gz")

    def test_a_restart_does_not_overwrite_the_file_of_the_crash(self):
        self.assertEqual(trace_name("t", Place(0, 2, 1), None, None), "t.restart1__w2_r0.jsonl.gz")


if __name__ == "__main__":
    unittest.main()
