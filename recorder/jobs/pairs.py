"""A job's run without and with the recorder, and in what they differ."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

from forks import ForkedRank
from replays import Verdict
from scripts import HERE

SKIPPED = 77
PREFIX = re.compile(r"^\[rank\d+\]:\s?")
EXCEPTION = re.compile(r"^[\w.]*(Error|Exception|Exit|Interrupt|Warning|Timeout)\b(?! \(\d+:).*")
# Which error a rank gets whose peer is gone or waits for another collective is a matter of time.
LOST_PEER = re.compile(
    r"\[.*?(Connection (closed|reset) by peer|Broken pipe|Connection refused|Timed out waiting).*"
)
# Ports, process ids, addresses of objects and memory in use differ from run to run.
VARYING = re.compile(
    r"0x[0-9a-f]+|(?<=[\]:])\d{4,5}\b|\b\d+ms\b|pid:? ?\d+|\d+\.\d+ ?s(?:econds)?\b"
    r"|\d+(?:\.\d+)? ?(?:GB|%)"
)
OUR_LINE = "zeroproof-recorder:"


@dataclass
class Ending:
    """How one rank ended."""

    code: int
    output: str
    exception: str
    errors: str = ""


@dataclass
class Run:
    """How all ranks ended, and after how many seconds."""

    ranks: list
    seconds: float


@dataclass
class Row:
    """One line of the table."""

    job: object
    detail: str
    plain: Run
    recorded: Run
    difference: str
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def is_skipped(self):
        """A package or a version is missing."""
        return all(rank.code == SKIPPED for rank in self.plain.ranks)

    @property
    def is_bad(self):
        """The recorder changed something, or the reader was wrong."""
        wrong = self.verdict.word in ("accused", "wrong", "unread")
        return bool(self.difference) or (wrong and not self.is_skipped)

    @property
    def fails_by_itself(self):
        """A healthy job ends with an error without the recorder: versions that do not fit."""
        return self.job.kind == "healthy" and any(rank.code for rank in self.plain.ranks)

    def text(self):
        """The line as printed."""
        name = f"{self.job.name:<34} {self.detail:<6}"
        if self.is_skipped:
            return f"{name} {self.plain.ranks[0].output.strip()}"
        state = f"CHANGED: {self.difference}" if self.difference else "identical"
        failed = [rank.exception or f"exit {rank.code}" for rank in self.plain.ranks if rank.code]
        if self.fails_by_itself:
            state += f", fails by itself: {failed[0][:150]}"
        seconds = f"{self.plain.seconds:.0f}/{self.recorded.seconds:.0f} s"
        is_told = self.verdict.word == "silent" and self.job.reason
        reason = f" ({self.job.reason})" if is_told else ""
        return f"{name} {state:<10} {seconds:<9} {self.verdict.text()}{reason}"

    def as_dict(self):
        """The line as JSON."""
        return {
            "job": self.job.name,
            "kind": self.job.kind,
            "world": self.job.world,
            "detail": self.detail,
            "skipped": self.plain.ranks[0].output.strip() if self.is_skipped else "",
            "codes": [rank.code for rank in self.plain.ranks],
            "exceptions": [rank.exception for rank in self.plain.ranks],
            "difference": self.difference,
            "reason": self.job.reason,
            "seconds": [round(self.plain.seconds, 2), round(self.recorded.seconds, 2)],
            **self.verdict.as_dict(),
        }


def compare(job, detail, folder, options, plain=None):
    """Both runs, and in what they differ; a run without the recorder may be given."""
    plain = plain or run(job, None, None, options)
    if all(rank.code == SKIPPED for rank in plain.ranks):
        return plain, plain, ""
    shutil.rmtree(folder, ignore_errors=True)
    recorded = run(job, detail, folder, options)
    wait_for_guardians(folder)
    return plain, recorded, _difference(plain, recorded)


def _difference(plain, recorded):
    for number, (one, other) in enumerate(zip(plain.ranks, recorded.ranks)):
        for what in ("code", "exception", "output"):
            left, right = getattr(one, what), getattr(other, what)
            if left != right:
                return f"rank {number} {what}: {_cut(left)} -> {_cut(right)}"
    return ""


def _cut(value):
    text = str(value).strip()
    return repr(text[-200:]) if isinstance(value, str) else text


def run(job, detail, folder, options):
    """All ranks of a job; without a detail, without the recorder."""
    command = []
    if detail:
        command = ["-m", "zeroproof_recorder", "run", "--out", str(folder), "--quiet"]
        command += ["--detail", detail, "--program", job.script.stem, *options.recorder.split()]
        command += job.recorder.split()
    command += [str(job.script), *job.arguments]
    began = time.monotonic()
    port = free_port()
    environments = [environment(rank, job.world, port) for rank in range(job.world)]
    start = _spawn if options.spawn else ForkedRank
    started = [start(command, env, options.timeout) for env in environments]
    deadline = began + options.timeout
    ranks = [_end(rank, deadline) for rank in started]
    return Run(ranks, time.monotonic() - began)


def free_port():
    """A port of this host that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(rank, world, port):
    """The variables of one rank, as torchrun sets them, for gloo on the CPU."""
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", DS_ACCELERATOR="cpu")
    env.update(PYTHONDONTWRITEBYTECODE="1", CUDA_VISIBLE_DEVICES="", TOKENIZERS_PARALLELISM="false")
    env["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), str(HERE), env.get("PYTHONPATH", "")])
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    place.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    place.update(GROUP_RANK=0, TORCHELASTIC_RUN_ID="none")  # as torchrun: Lightning looks at it
    env.update({key: str(value) for key, value in place.items()})
    return env


def _spawn(command, env, _timeout):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, *command]
    return subprocess.Popen(command, env=env, start_new_session=True, **pipes)


def _end(process, deadline):
    try:
        output, errors = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return Ending(process.returncode, _steady(output), _last_exception(errors), errors)


def _steady(text):
    lines = [line for line in text.splitlines() if not line.startswith(OUR_LINE)]
    return VARYING.sub("#", "\n".join(lines))


def _last_exception(errors):
    lines = [PREFIX.sub("", line) for line in errors.splitlines()]
    found = [line for line in lines if EXCEPTION.match(line) and "Warning" not in line]
    return VARYING.sub("#", LOST_PEER.sub("a peer was lost", found[-1])) if found else ""


def wait_for_guardians(folder, seconds=20):
    """Returns once no process completes a recording of the folder, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while list(folder.glob(".*.spool")) and time.monotonic() < deadline:
        time.sleep(0.05)
