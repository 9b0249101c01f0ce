"""The spool, the file, and what the guardian makes of a dead process."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from zeroproof_recorder.checker import read_lines
from zeroproof_recorder.guardian import recover
from zeroproof_recorder.spool import Spool, packed
from zeroproof_recorder.trace_file import TraceFile
from zeroproof_recorder.writer import TraceWriter

PACKAGE = str(Path(__file__).resolve().parents[2])
BEGIN = {"header": {"rec": "header", "format": "hooktrace", "rank": 0}}


def event(n):
    return (n, 0, "mark", -1, 0, {"label": str(n)})


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "t__w1_r0.jsonl.gz"
        self.begin = {**BEGIN, "path": str(self.path)}

    def read(self):
        return [json.loads(line) for line in read_lines(self.path)]


class SpoolTest(FolderTest):
    def test_gives_back_what_it_took_until_it_is_full(self):
        spool = Spool(self.folder / "s", 4096)
        taken = []
        while spool.put(packed(event(len(taken)))):
            taken.append(event(len(taken)))
        self.assertGreater(len(taken), 50)
        self.assertEqual(spool.records(), taken)
        spool.reset()
        self.assertEqual(spool.records(), [])
        self.assertTrue(spool.put(packed(event(0))))
        self.assertEqual(spool.records(), [event(0)])  # without the bytes that lay after it

    def test_records_of_a_signal_handler_come_after_the_one_it_interrupted(self):
        spool = Spool(self.folder / "s", 4096)
        spool._is_busy = True  # as it is while a record is written
        self.assertTrue(spool.put(packed(event(2))))
        spool._is_busy = False
        spool.put(packed(event(1)))
        self.assertEqual(spool.records(), [event(1), event(2)])

    def test_threads_lose_nothing(self):
        spool = Spool(self.folder / "s", 1 << 20)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)

        def put(number):
            for n in range(500):
                spool.put(packed((number, n)))

        threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = spool.records()
        self.assertEqual(len(taken), 2000)
        for number in range(4):
            self.assertEqual([n for who, n in taken if who == number], list(range(500)))

    def test_refuses_what_is_not_plain(self):
        with self.assertRaises(ValueError):
            packed({"a": object()})


class TraceFileTest(FolderTest):
    def test_is_readable_after_every_append(self):
        file = TraceFile(self.path)
        for n in range(3):
            file.append(b"%d\n" % n)
            self.assertEqual(gzip.decompress(self.path.read_bytes()), b"0\n1\n2\n"[: 2 * (n + 1)])
        file.close()
        self.assertEqual(os.listdir(self.folder), [self.path.name])

    def test_a_broken_last_member_costs_only_itself(self):
        file = TraceFile(self.path)
        file.append(b'{"a":1}\n')
        whole = file.size
        file.append(b'{"b":2}\n' * 100)
        file.close()
        with open(self.path, "r+b") as broken:
            broken.truncate(whole + 12)
        self.assertEqual(list(read_lines(self.path)), ['{"a":1}\n'])

    def test_another_process_takes_up_what_is_whole(self):
        file = TraceFile(self.path)
        file.append(b"a\n")
        whole = file.size
        file.append(os.urandom(500))
        again = TraceFile.take_up(self.path, whole)
        again.append(b"b\n")
        again.close()
        self.assertEqual(gzip.decompress(self.path.read_bytes()), b"a\nb\n")


class RecoverTest(FolderTest):
    def spool(self, *records):
        spool = Spool(self.folder / ".host.1.spool", 1 << 16)
        for record in records:
            spool.put(packed(record))
        return spool

    def test_a_spool_becomes_a_file(self):
        state = TraceWriter().state()
        base = {"base": {"writer": state, "begin": self.begin}}
        spool = self.spool(base, event(1), event(2))
        self.assertEqual(recover(spool.path), self.path)
        kinds = [record["rec"] for record in self.read()]
        self.assertEqual(kinds, ["header", "ev", "ev", "note"])  # and no end: it is truncated
        self.assertFalse(spool.path.exists())

    def test_the_last_word_on_name_and_header_counts(self):
        other = {"path": str(self.folder / "wrong.gz"), "header": {}}
        state = TraceWriter().state()
        first = {"base": {"writer": state, "begin": other}}
        last = {"base": {"writer": state, "begin": self.begin}}
        self.assertEqual(recover(self.spool(first, event(1), last).path), self.path)

    def test_what_was_written_is_not_written_twice(self):
        writer = TraceWriter()
        writer.write([event(1)], self.begin)
        base = {"base": {"writer": writer.state(), "begin": self.begin}}
        writer.write([event(2)], self.begin)  # died between writing and resetting the spool
        recover(self.spool(base, event(2)).path)
        labels = [record.get("label") for record in self.read() if record["rec"] == "ev"]
        self.assertEqual(labels, ["1", "2"])
        self.assertEqual([r["lc"] for r in self.read() if r["rec"] == "ev"], [1, 2])

    def test_an_empty_recording_leaves_no_file(self):
        base = {"base": {"writer": TraceWriter().state(), "begin": self.begin}}
        self.assertIsNone(recover(self.spool(base).path))
        self.assertEqual(os.listdir(self.folder), [])


CHILD = """
import os, sys, time
sys.path.insert(0, {package!r})
from pathlib import Path
from zeroproof_recorder.guardian import Guardian
from zeroproof_recorder.spool import Spool, packed
from zeroproof_recorder.writer import TraceWriter
spool = Spool(Path({folder!r}) / ".s.spool", 1 << 16)
begin = {begin!r}
spool.put(packed({{"base": {{"writer": TraceWriter().state(), "begin": begin}}}}))
guardian = Guardian(spool.path)
spool.put(packed((1, 0, "mark", -1, 0, {{"label": "last words"}})))
print("ready", flush=True)
{ending}
"""


class GuardianTest(FolderTest):
    def end(self, ending, number=None):
        code = CHILD.format(
            package=PACKAGE, folder=str(self.folder), begin=self.begin, ending=ending
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.assertEqual(child.stdout.readline(), b"ready\n")
        if number is not None:
            child.send_signal(number)
        child.wait(30)
        child.stdout.close()
        deadline = time.monotonic() + 20
        while list(self.folder.glob(".*.spool")) and time.monotonic() < deadline:
            time.sleep(0.05)

    def test_no_death_costs_what_was_recorded(self):
        deaths = [
            ("time.sleep(60)", signal.SIGKILL),
            ("time.sleep(60)", signal.SIGTERM),
            ("os.abort()", None),
            ("os._exit(3)", None),
        ]
        for ending, number in deaths:
            with self.subTest(ending=ending, number=number):
                self.end(ending, number)
                labels = [record.get("label") for record in self.read() if record["rec"] == "ev"]
                self.assertEqual(labels, ["last words"])
                self.path.unlink()

    def test_a_process_that_is_done_is_left_alone(self):
        self.end("spool.remove(); guardian.dismiss()")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
