"""What the tests with PyTorch share."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from zeroproof_recorder.checker import TraceCheck, read_lines

RECORDER = Path(__file__).resolve().parents[2]
JOBS = RECORDER / "jobs"
sys.path.insert(0, str(JOBS))


def has(module):
    """Whether a module can be imported, in a process of its own: DeepSpeed takes long."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def read(path):
    """The records of a trace, which has to be sound."""
    check, lines = TraceCheck(), list(read_lines(path))
    check.read(lines)
    assert not check.findings, f"{path}: {check.findings[:3]}"
    return [json.loads(line) for line in lines]


def _hears_ctrl_c():
    """A shell that runs these tests in the background makes its children deaf to it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def free_port():
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def events(path):
    """The events of a trace."""
    return [record for record in read(path) if record["rec"] == "ev"]


def words(found, *kinds):
    """Events of some kinds as short words, in their order."""
    names = ("param", "module", "label", "op", "method", "index")
    out = []
    for event in found:
        if event["k"] in kinds:
            subject = next((str(event[name]) for name in names if name in event), "")
            out.append(f"{event['k'].split('.')[-1]} {subject}".strip())
    return out


class RecordingTest(unittest.TestCase):
    """A folder for traces, and ways to make some."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def trace(self, pattern="*.jsonl.gz"):
        """The one file of that name."""
        paths = list(self.folder.glob(pattern))
        self.assertEqual(len(paths), 1, os.listdir(self.folder))
        return paths[0]

    def start(self, code_or_script, *arguments, world=1, run=("--detail", "full")):
        """Processes of a job under `run`; text is written to a script first."""
        script = Path(code_or_script)
        if "\n" in code_or_script:
            script = self.folder / "script.py"
            script.write_text(code_or_script)
        port = free_port()
        started = []
        for rank in range(world):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
            env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
            env.update(PYTHONPATH=os.pathsep.join([str(RECORDER), str(JOBS)]), OMP_NUM_THREADS="1")
            command = [sys.executable, "-m", "zeroproof_recorder", "run", "--out", str(self.folder)]
            command += [*run, str(script), *arguments]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen(command, env=env, preexec_fn=_hears_ctrl_c, **pipes))
        return started

    def run_job(self, *arguments, codes=None, **options):
        """Runs a job to its end; what its ranks said on stderr."""
        said = []
        for number, process in enumerate(self.start(*arguments, **options)):
            _, errors = process.communicate(timeout=240)
            said.append(errors)
            expected = 0 if codes is None else codes[number]
            if expected is not None:
                self.assertEqual(process.returncode, expected, errors[-2000:])
        return said

    def wait_for_guardians(self):
        """Until no spool is left."""
        deadline = time.monotonic() + 30
        while list(self.folder.glob(".*.spool")) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(list(self.folder.glob(".*.spool")), [])
