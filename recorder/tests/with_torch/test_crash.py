"""A readable file however a job ends."""

import signal

import support

TRAIN = """
import os, sys, time
import torch
import models
from job import batch
model = models.Mlp()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(batch(step)).backward()
    optimizer.step()
print("trained", flush=True)
"""
# What the script does then, the signal it gets, its exit code, and whether the file has an end.
ENDINGS = [
    ("time.sleep(60)", signal.SIGTERM, -signal.SIGTERM, False),
    ("time.sleep(60)", signal.SIGKILL, -signal.SIGKILL, False),
    ("time.sleep(60)", signal.SIGINT, None, True),
    ("os.abort()", None, -signal.SIGABRT, False),
    ("import ctypes; ctypes.string_at(0)", None, -signal.SIGSEGV, False),
    ("os._exit(4)", None, 4, False),
    ("sys.exit(5)", None, 5, True),
    ("raise ValueError('the end')", None, 1, True),
    ("pass", None, 0, True),
]


class CrashTest(support.RecordingTest):
    def test_what_was_recorded_survives_every_ending(self):
        for ending, number, code, has_end in ENDINGS:
            with self.subTest(ending=ending, signal=number):
                (process,) = self.start(TRAIN + ending + "\n")
                self.assertEqual(process.stdout.readline(), "trained\n")
                if number is not None:
                    process.send_signal(number)
                _, said = process.communicate(timeout=60)
                self.wait_for_guardians()
                if code is not None:
                    self.assertEqual(process.returncode, code, said)
                records = support.read(self.trace())
                steps = [r for r in records if r.get("k") == "opt.step"]
                self.assertEqual(len(steps), 2)
                self.assertEqual(records[-1]["rec"] == "end", has_end)
                self.trace().unlink()

    def test_an_exception_is_the_last_event_and_its_traceback_is_the_scripts(self):
        (said,) = self.run_job(TRAIN + "raise ValueError('the end')\n", codes=[1])
        last = support.events(self.trace())[-1]
        self.assertEqual(
            (last["k"], last["type"], last["message"]), ("exc", "ValueError", "the end")
        )
        self.assertIn("script.py", said)
        self.assertNotIn("launch.py", said)

    def test_forked_workers_write_nothing(self):
        fork = "pid = os.fork()\nif pid == 0:\n    model(batch(9)).backward()\n    sys.exit(0)\n"
        (said,) = self.run_job(TRAIN + fork + "os.waitpid(pid, 0)\nmodel(batch(9)).backward()\n")
        self.assertEqual(said.count("events in"), 1)
        self.assertNotIn("no events recorded", said)
        backwards = [e for e in support.events(self.trace()) if e["k"] == "gt.begin"]
        self.assertEqual(len(backwards), 3)

    def test_a_fork_after_the_recording_is_no_business_of_ours(self):
        fork = "pid = os.fork()\nif pid == 0:\n    os._exit(0)\n_, code = os.waitpid(pid, 0)\n"
        late = TRAIN.replace("range(2)", "range(4)") + fork + "assert code == 0\n"
        (said,) = self.run_job(late, run=("--steps", "0:1"))
        self.assertNotIn("Error", said)
        self.assertNotIn("Exception", said)

    def test_a_data_loader_with_workers_does_not_disturb(self):
        loader = "list(torch.utils.data.DataLoader(range(8), num_workers=2))\n"
        self.run_job(TRAIN + loader)
        self.assertEqual(support.read(self.trace())[-1]["rec"], "end")

    def test_steps_that_never_come_are_said(self):
        (said,) = self.run_job(TRAIN, run=("--steps", "10:12"))
        self.assertIn("no events recorded: the job made 2 optimizer steps", said)
        self.assertEqual(list(self.folder.glob("*.gz")), [])

    def test_arguments_and_modules_reach_the_script(self):
        script = "import sys\nassert sys.argv[1:] == ['--steps', '3', 'x'], sys.argv\n"
        self.run_job(script, "--steps", "3", "x")
        (said,) = self.run_job("missing.py", codes=[2])
        self.assertIn("no such script", said)


if __name__ == "__main__":
    support.unittest.main()
