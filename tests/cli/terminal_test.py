"""What a person sees: terminal_test.py ZEROPROOF

Runs verbs on a terminal of 80 columns. A line is longer only where it is to be pasted, is a row of a
table, or has a word that cannot be broken. The last line of a failure is the command that shows it
again; pasted into a shell, it ends with the same exit code.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "..", "traces", "recorder-torch2.11.0-cpu")
SUBJECT = os.path.join(HERE, "..", "data", "subject", "fake_subject.py")
COLUMNS = 80
ESCAPES = re.compile(r"\x1b\[[0-9;]*[mK]")


def on_terminal(words, cwd):
    """Exit code and lines of stdout, which is a terminal; stderr goes elsewhere."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    run = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.DEVNULL, cwd=cwd,
                           env={**environment, "TERM": "xterm"})
    os.close(slave)
    data = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    os.close(master)
    return run.wait(), [ESCAPES.sub("", line) for line in data.decode().replace("\r\n", "\n").splitlines()]


def may_be_long(line):
    is_table = len(re.findall(r"\S {2,}(?=\S)", line)) >= 3
    return line.startswith(("reproduce: ", "next  ")) or is_table or max(map(len, line.split())) > COLUMNS // 2


class Terminal(unittest.TestCase):
    def check(self, code, *words):
        with tempfile.TemporaryDirectory() as folder:
            ended, lines = on_terminal([ZEROPROOF, *words], folder)
            self.assertEqual(ended, code, lines[-5:])
            self.assertGreater(len(lines), 1)
            for line in lines:
                if len(line) > COLUMNS:
                    self.assertTrue(may_be_long(line), line)
            if code == 0:
                return
            self.assertTrue(lines[-1].startswith("reproduce: "), lines[-3:])
            again = subprocess.run(lines[-1].removeprefix("reproduce: "), shell=True, capture_output=True,
                                   cwd=folder, check=False)
            self.assertEqual(again.returncode, code, again.stderr)

    def trace(self, name):
        return os.path.join(TRACES, name + ".jsonl.gz")

    def test_replay(self):
        self.check(1, "replay", self.trace("skipped_collective__w2_r0"), self.trace("skipped_collective__w2_r1"))
        self.check(0, "replay", self.trace("ddp_mlp__w2_r0"), self.trace("ddp_mlp__w2_r1"))

    def test_explore(self):
        self.check(1, "explore", "S2", "--policy", "deepspeed-0.18.3")
        self.check(0, "explore", "S2")
        self.check(0, "explore", "two_losses", "--stage", "3", "--scheduler", "pct:2", "--budget", "5x")
        self.check(1, "explore", "hook_order", "--set", "P=2", "--set", "N=3", "--set", "stage=2", "--set", "order=any")

    def test_hunt(self):
        self.check(1, "hunt", "--engine", "differs", "--python", SUBJECT, "--budget", "5x")
        self.check(0, "hunt", "--engine", "equal", "--python", SUBJECT, "--budget", "5x")

    def test_diff(self):
        self.check(1, "diff", self.trace("ddp_mlp__w2_r0"), self.trace("ddp_no_sync__w2_r0"))


if __name__ == "__main__":
    ZEROPROOF = os.path.abspath(sys.argv.pop(1))
    unittest.main()
