"""A rank that dies or waits is a result, and the pool goes on."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

from documents import STEP, backward, document, forward
from zeroproof_subject import pool
from zeroproof_subject.subject import Comparison, Subject

PROGRAM = document(ranks=2, body=[forward("g1"), backward("g1"), STEP])
FAULTY = {"dies": "crash", "waits": "hang"}


def stat_of(process):
    """State and parent; None for a process that is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None


def is_running(process):
    return stat_of(process) is not None and stat_of(process)[0] != "Z"


def children_of(parent):
    return [it for it in os.listdir("/proc") if it.isdigit() and stat_of(it) and stat_of(it)[1] == str(parent)]


def ranks_that_work(parent):
    """Once one rank has a thread that polls."""
    ranks = children_of(parent)
    return ranks if len(ranks) == 2 and any(len(os.listdir(f"/proc/{it}/task")) > 2 for it in ranks) else []


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


class PoolTest(unittest.TestCase):
    def test_crashes_and_hangs_are_results(self):
        for fault, status in FAULTY.items():
            with self.subTest(fault=fault), mock.patch.object(pool, "FIRST_LIMIT", 15.0):
                subject = Subject("faulty_engine:make", {"fault": fault})
                try:
                    result = subject.run(PROGRAM)
                    self.assertEqual(result.status, status)
                    self.assertIn("rank 1", result.detail)
                    self.assertNotIn(2, subject.pool.groups)
                finally:
                    subject.end()

    def test_ranks_end_with_a_parent_that_is_killed(self):
        command = [sys.executable, "-m", "zeroproof_subject", "serve"]
        command += ["--engine", "faulty_engine:make", "--set", "fault=waits"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, text=True, **pipes) as serve:
            serve.stdout.readline()  # hello
            serve.stdin.write(json.dumps({"id": 1, "run": PROGRAM}) + "\n")
            serve.stdin.flush()
            ranks = wait_for(lambda: ranks_that_work(serve.pid))
            serve.send_signal(signal.SIGTERM)
        self.assertEqual(len(ranks), 2)
        self.assertTrue(wait_for(lambda: not any(map(is_running, ranks))), ranks)

    def test_a_rank_that_still_computes_does_not_hang(self):
        subject = Subject("faulty_engine:make", {"fault": "is slow"})
        self.addCleanup(subject.end)
        self.assertEqual(subject.run(PROGRAM).status, "ran")
        for limit, status in ((1.5, "ran"), (0.3, "hang")):
            with mock.patch.object(pool, "LOOK", 1.0):
                with mock.patch.object(subject.pool, "limit", lambda limit=limit: limit):
                    self.assertEqual(subject.run(PROGRAM).status, status)

    def test_a_program_that_plain_pytorch_cannot_run_says_why(self):
        comparison = Comparison(Subject("faulty_engine:make", {}))
        self.addCleanup(comparison.end)
        verdict = comparison.run(document(body=[backward("of no forward")]))
        self.assertEqual(verdict.status, "no_reference")
        self.assertIn("plain PyTorch: KeyError", verdict.document()["detail"])

    def test_an_error_of_an_engine_is_seen_and_the_next_program_runs(self):
        subject = Subject("faulty_engine:make", {"fault": "raises"})
        try:
            for _ in range(2):
                result = subject.run(PROGRAM)
                self.assertEqual(result.status, "ran")
                last = [seen[-1] for seen in result.ranks]
                self.assertEqual({it["values"]["text"] for it in last}, {"on purpose"})
                self.assertEqual({it["at"] for it in last}, {"body/2/step"})
            self.assertEqual(subject.pool.groups_made, 2)
        finally:
            subject.end()

    def test_a_group_ends_after_its_cases(self):
        subject = Subject("faulty_engine:make", {})
        subject.pool.cases_of_a_group = 2
        try:
            for _ in range(4):
                self.assertEqual(subject.run(PROGRAM).status, "ran")
            self.assertEqual(subject.pool.groups_made, 2)
        finally:
            subject.end()


if __name__ == "__main__":
    unittest.main()
