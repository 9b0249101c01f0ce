"""The command line and `check`."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from zeroproof_recorder.checker import TraceCheck
from zeroproof_recorder.command import main

PACKAGE = str(Path(__file__).resolve().parents[2])
HEADER = {"rec": "header", "format": "hooktrace", "version": [1, 0], "rank": 0, "world": 1}


def event(lc, kind, **fields):
    return {"rec": "ev", "lc": lc, "t": lc, "r": 0, "th": 0, "k": kind, "gt": -1, "d": 0, **fields}


PARAM = {"rec": "param", "id": 0, "name": "w", "shape": [1], "dtype": "float32"}
# Records between header and end, and what is found ("" without a finding).
TRACES = [
    ([event(1, "gt.begin", call=0), event(2, "gt.end", call=0)], ""),
    ([event(1, "gt.begin", call=0)], "never ended"),
    ([event(1, "gt.end", call=0)], "not open"),
    ([event(2, "mark", label="a"), event(2, "mark", label="b")], "logical clock 2 after 2"),
    ([event(1, "mark", label="a", t=5), event(2, "mark", label="b", t=4)], "time goes back"),
    ([event(1, "mark")], "lacks label"),
    ([PARAM, event(1, "param.post_acc", param="v")], "was not declared"),
    ([event(1, "coll.complete", op="x", cseq=0, group="world")], "was not issued"),
    ([event(1, "coll.issue", op="x", cseq=0), event(2, "coll.issue", op="x", cseq=0)], "twice"),
]


class CheckTest(unittest.TestCase):
    def test_rules_of_the_format(self):
        for records, finding in TRACES:
            with self.subTest(finding=finding):
                events = sum(record["rec"] == "ev" for record in records)
                end = {"rec": "end", "events": events, "records": len(records)}
                check = TraceCheck()
                check.read(json.dumps(record) for record in [HEADER, *records, end])
                found = "; ".join(check.findings)
                self.assertEqual(bool(finding), bool(found), found)
                self.assertIn(finding, found)
                self.assertTrue(check.is_complete)

    def test_wrong_counts_and_no_end_are_told_apart(self):
        check = TraceCheck()
        check.read([json.dumps(HEADER), json.dumps({"rec": "end", "events": 1, "records": 1})])
        self.assertIn("counts", check.findings[0])
        check = TraceCheck()
        check.read([json.dumps(HEADER)])
        self.assertEqual((check.findings, check.is_complete), ([], False))


class CommandTest(unittest.TestCase):
    def call(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def test_help_has_examples_that_can_be_pasted(self):
        for arguments in (["--help"], ["run", "--help"]):
            code, out, _ = self.call(*arguments)
            self.assertEqual(code, 0)
            self.assertIn("torchrun --nproc_per_node 8 -m zeroproof_recorder run", out)

    def test_misuse_is_one_line_and_code_2(self):
        code, _, err = self.call("run", "--detail", "everything", "x.py")
        self.assertEqual(code, 2)
        self.assertIn("hooks", err)

    def test_what_a_launcher_puts_first_goes_to_the_script(self):
        seen = []
        fake = types.ModuleType("zeroproof_recorder.launch")
        fake.launch = lambda options: seen.append([options.script, *options.arguments]) or 0
        with mock.patch.dict(sys.modules, {"zeroproof_recorder.launch": fake}):
            for first in (["--local_rank=1"], ["--local-rank=1"], ["--local_rank", "1"]):
                self.assertEqual(self.call(*first, "run", "x.py", "--lr", "1")[0], 0)
                self.assertEqual(seen.pop(), ["x.py", *first, "--lr", "1"])

    def test_check_reads_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "t.jsonl")
            end = {"rec": "end", "events": 0, "records": 0}
            path.write_text(json.dumps(HEADER) + "\n" + json.dumps(end) + "\n")
            code, out, _ = self.call("check", folder)
            self.assertEqual((code, out.split()[0]), (0, "sound"))
            path.write_text("no trace\n")
            self.assertEqual(self.call("check", folder)[0], 1)
            self.assertEqual(self.call("check", str(Path(folder, "missing")))[0], 5)

    def test_recover_finds_nothing_in_a_clean_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("no events to recover", self.call("recover", folder)[1])

    def test_no_command_needs_pytorch_unless_it_records(self):
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "from zeroproof_recorder.command import main\n"
            "sys.exit(main(['run', 'x.py']))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": PACKAGE},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("has no PyTorch", ended.stderr)


if __name__ == "__main__":
    unittest.main()
