"""`zeroproof watch` beside two processes that record: watch_live_test.py ZEROPROOF

The recorder's own spool, writer and guardian do the writing; PyTorch is not needed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

RECORDER = Path(__file__).resolve().parents[2] / "recorder"
sys.path.insert(0, str(RECORDER))

from zeroproof_recorder.encoder import header  # noqa: E402
from zeroproof_recorder.spool import SPOOL_VERSION, Spool, packed, spool_path  # noqa: E402
from zeroproof_recorder.writer import TraceWriter  # noqa: E402

PATIENCE = 60  # seconds, on a busy machine
CLOCK = {"unit": "ns", "source": "CLOCK_MONOTONIC", "mono0": 0, "unix0": 0}


class Rank:
    """What session.py does, without PyTorch; both ranks live in this process."""

    def __init__(self, folder, rank):
        self.folder, self.rank, self.time, self.passes, self.issued = folder, rank, 0, 0, 0
        self.writer = TraceWriter()
        name = spool_path(folder).name.replace(".spool", f"{rank}.spool")  # no process of ours
        self.spool = Spool(folder / name, 1 << 20)
        self.tell()
        self.put({"rec": "group", "name": "world", "ranks": [0, 1]})
        self.put({"rec": "param", "id": 0, "name": "a", "shape": [4], "dtype": "float32",
                  "requires_grad": True})

    def begin(self):
        facts = {"program": "train", "producer": {"tool": "zeroproof-recorder"}}
        return {"path": str(self.folder / f"train__w2_r{self.rank}.jsonl.gz"),
                "header": header(self.rank, 2, CLOCK, facts)}

    def tell(self):
        spool = {"version": SPOOL_VERSION, "pass": self.passes}
        self.put({"base": {"writer": self.writer.state(), "begin": self.begin(), "spool": spool}})

    def put(self, record):
        self.spool.put(packed(record))

    def event(self, kind, **fields):
        self.time += 1
        self.put((self.time, 0, kind, -1, 0, fields))

    def issue(self):
        self.key = {"op": "all_reduce", "cseq": self.issued, "group": "world"}
        self.issued += 1
        self.event("coll.issue", **self.key, bytes=16, params=["a"])

    def complete(self):
        self.event("coll.complete", **self.key)

    def flush(self):
        records = [one for one in self.spool.records() if not (isinstance(one, dict) and "base" in one)]
        self.writer.write(records, self.begin())
        self.spool.reset()
        self.passes += 1
        self.tell()

    def close(self):
        self.flush()
        self.writer.end()
        self.spool.remove()

    def leave(self):
        self.writer.close()


class Watching:
    def __init__(self, folder, *words):
        self.process = subprocess.Popen([ZEROPROOF, "watch", str(folder), "--json", "--interval", "0.05", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def until(self, kind):
        """The next news of this kind; those before it are passed over."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            line = self.process.stdout.readline()
            if not line:
                break
            news = json.loads(line)
            assert news["schema"] == "zeroproof.watch/1"
            if news["news"] == kind:
                return news
        raise AssertionError(f"no {kind}: {self.process.stderr.read()}")

    def code(self):
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def stop(self):
        self.process.kill()
        self.process.communicate()


class Watch(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "trace"
        self.watching = None

    def tearDown(self):
        if self.watching:
            self.watching.stop()
        self.scratch.cleanup()

    def watch(self, *words):
        self.watching = Watching(self.folder, *words)
        return self.watching

    def ranks(self):
        self.folder.mkdir(exist_ok=True)
        return [Rank(self.folder, 0), Rank(self.folder, 1)]

    def meet(self, ranks):
        for rank in ranks:
            rank.issue()
        for rank in ranks:
            rank.complete()
        for rank in ranks:
            rank.event("opt.step", optimizer=0)

    def test_a_job_that_ends_well(self):
        watching = self.watch("--hang-after", "30")  # before the folder is there
        ranks = self.ranks()
        self.assertEqual(watching.until("began")["world"], 2)
        for _ in range(50):
            self.meet(ranks)
            ranks[0].flush()  # one rank fills its spool often, the other never
        for rank in ranks:
            rank.close()
        self.assertEqual(watching.until("over")["ranks"], [0, 1])
        self.assertEqual(watching.code(), 0)

    def test_a_hang(self):
        ranks = self.ranks()
        for _ in range(3):
            self.meet(ranks)
        ranks[1].flush()
        ranks[1].event("mark", label="loads data")
        ranks[0].issue()
        watching = self.watch("--hang-after", "1")
        found = watching.until("finding")
        self.assertTrue(found["hang"])
        self.assertEqual(found["waiting"], [0])
        self.assertEqual(found["for"], [1])
        self.assertEqual(found["in"], "all_reduce number 3 of group world (16 bytes)")
        self.assertIn("loads data", found["absent"][0]["text"])
        self.assertEqual(found["diagnosis"]["kind"], "collective.missing")
        self.assertEqual(found["diagnosis"]["ranks"], [1])
        self.assertGreaterEqual(found["quiet_seconds"], 1)
        self.assertEqual(watching.code(), 1)

    def test_a_hang_that_goes_on(self):
        ranks = self.ranks()
        self.meet(ranks)
        ranks[0].issue()
        watching = self.watch("--hang-after", "1", "--until-end")
        self.assertTrue(watching.until("finding")["hang"])
        ranks[1].issue()
        for rank in ranks:
            rank.complete()
            rank.event("opt.step", optimizer=0)
        self.assertEqual(watching.until("goes_on")["ranks"], [0])
        for rank in ranks:
            rank.close()
        watching.until("over")
        self.assertEqual(watching.code(), 0)

    def test_a_rank_that_dies(self):
        ranks = self.ranks()
        self.meet(ranks)
        watching = self.watch("--hang-after", "30", "--until-end")
        watching.until("began")
        sys.path.insert(0, str(RECORDER))
        from zeroproof_recorder.guardian import recover
        ranks[1].event("mark", label="last word")
        recover(ranks[1].spool.path)  # as the guardian does after a SIGKILL
        self.assertEqual(watching.until("died")["ranks"], [1])
        found = watching.until("finding")
        self.assertEqual(found["diagnosis"]["kind"], "process.ended_early")
        self.assertIn("last word", found["diagnosis"]["order"][-1]["text"])
        ranks[0].close()
        watching.until("over")
        self.assertEqual(watching.code(), 1)

    def test_an_interrupt_is_clean(self):
        self.ranks()
        watching = self.watch()
        watching.until("began")
        watching.process.terminate()
        out, err = watching.process.communicate(timeout=PATIENCE)
        self.assertEqual(watching.process.returncode, 130, err)
        self.assertEqual(out, "")

    def test_text_and_misuse(self):
        ranks = self.ranks()
        self.meet(ranks)
        for rank in ranks:
            rank.close()
        run = subprocess.run([ZEROPROOF, "watch", str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("ranks 0, 1 of 2 record", run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], "held: every rank has ended, and no rule was broken")
        hanging = Path(self.scratch.name) / "hanging"
        self.folder = hanging
        ranks = self.ranks()
        self.meet(ranks)
        ranks[0].issue()
        run = subprocess.run([ZEROPROOF, "watch", str(hanging), "--hang-after", "0.2"], capture_output=True, text=True, check=False)
        self.assertLessEqual(max(map(len, run.stdout.splitlines()[:-1])), 80)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("hang: rank 0 waits for rank 1 in all_reduce number 1 of group world", run.stdout)
        self.assertTrue(run.stdout.splitlines()[-1].startswith("reproduce: "), run.stdout)
        self.folder = Path(self.scratch.name) / "trace"
        for words, code in (([], 2), (["a", "b"], 2), ([str(self.folder), "--hang-after", "0"], 2),
                            ([str(self.folder), "--interval", "x"], 2),
                            ([str(self.folder / "train__w2_r0.jsonl.gz")], 5)):
            run = subprocess.run([ZEROPROOF, "watch", *words], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, code, words)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)


if __name__ == "__main__":
    ZEROPROOF = os.path.abspath(sys.argv.pop(1))
    unittest.main()
