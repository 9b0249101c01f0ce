"""Groups of rank processes that stay for many programs, with a time limit for each program."""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from zeroproof_subject import frames
from zeroproof_subject.engine import Truth, View
from zeroproof_subject.rank import EngineChoice, Place, serve

FIRST_LIMIT = 180.0  # seconds, until a group of so many ranks has run a program
LEAST_LIMIT = 20.0
LIMIT_OVER_MEDIAN = 40
LOOK = 15.0  # seconds, after the limit
LEAST_LOAD = 0.01  # of a processor, of ranks that do not hang


@dataclass
class RunResult:
    """What became of one program. Of a rank that did not answer, `ranks` has None."""

    status: str  # ran, hang, crash
    ranks: list[list[dict[str, Any]] | None]
    seconds: float
    detail: str = ""  # what crashed ranks printed last, or where hanging ones are
    imported: list[str] = field(default_factory=list)  # modules, for this program
    stacks: list[frames.Stack] = field(default_factory=list)  # of hanging ranks

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "status": self.status,
            "ranks": self.ranks,
            "seconds": self.seconds,
            "detail": self.detail,
        }


    def failure(self) -> dict[str, str]:
        """Of a crash or a hang, what its signature is made of."""
        statements = sorted({it.statement for it in self.stacks if it.statement})
        places = sorted({it.place() for it in self.stacks if it.statement})
        return {
            "text": self.detail,
            "statement": " and ".join(statements) or "run",
            "frame": " and ".join(places),
        }


@dataclass
class Group:
    """The processes of one engine and one number of ranks."""

    choice: EngineChoice
    ranks: int
    folder: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="zeroproof-"))
    processes: list[Any] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    cases: int = 0

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("fork")
        for rank in range(1 if self.choice.is_plain else self.ranks):
            place = Place(rank, self.ranks, f"{self.folder}/store", f"{self.folder}/{rank}.log")
            ours, theirs = context.Pipe()
            process = context.Process(
                target=serve, args=(theirs, self.choice, place), daemon=True
            )
            process.start()
            theirs.close()
            self.processes.append(process)
            self.connections.append(ours)

    def run(self, request: dict[str, Any], limit: float) -> RunResult:
        """One program on all ranks."""
        started = time.monotonic()
        self.cases += 1
        answers: dict[int, dict[str, Any]] = {}
        status = self.ask(request) or self.collect(answers, limit)
        ranks: list[list[dict[str, Any]] | None] = []
        for rank in range(len(self.connections)):
            ranks += answers[rank]["seen"] if rank in answers else [None]
        detail, stacks = "", []
        if status == "crash":
            detail = self.last_lines()
        elif status == "hang":
            stacks = self.stacks()
            detail = "; ".join(f"rank {at}: {it.text()}" for at, it in enumerate(stacks))
        imported = [name for it in answers.values() for name in it["imported"]]
        seconds = time.monotonic() - started
        return RunResult(status, ranks, seconds, detail, imported, stacks)

    def ask(self, request: dict[str, Any]) -> str:
        """Sends a program to each rank."""
        try:
            for connection in self.connections:
                connection.send(request)
        except OSError:
            return "crash"
        return ""

    def collect(self, answers: dict[int, dict[str, Any]], limit: float) -> str:
        """Until all ranks have answered, one has died, or time is over.

        Ranks that still compute have as many seconds of a processor as others have of time.
        """
        looked = time.monotonic()
        deadline = looked + limit
        used_first = used = self.cpu_seconds()
        while len(answers) < len(self.connections):
            left = [it for at, it in enumerate(self.connections) if at not in answers]
            ready = wait(left, timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                used, before = self.cpu_seconds(), used
                looked, before_that = time.monotonic(), looked
                load = (used - before) / (looked - before_that)
                if load < LEAST_LOAD or used - used_first > limit:
                    return "hang"
                deadline = looked + LOOK
            for connection in ready:
                try:
                    answers[self.connections.index(connection)] = connection.recv()
                except (EOFError, OSError):
                    return "crash"
        return "ran"

    def cpu_seconds(self) -> float:
        """What all ranks have used of processors."""
        return sum(cpu_seconds_of(process.pid) for process in self.processes)

    def last_lines(self) -> str:
        """What each rank printed last."""
        lines = []
        for rank, process in enumerate(self.processes):
            process.join(0.2)
            log = Path(self.folder, f"{rank}.log")
            printed = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
            lines.append(f"rank {rank} ({process.exitcode}): {printed[-1] if printed else ''}")
        return "; ".join(lines)

    def stacks(self) -> list[frames.Stack]:
        """Where each rank is."""
        for process in self.processes:
            os.kill(process.pid, signal.SIGUSR1)
        time.sleep(0.5)
        stacks = []
        for rank in range(len(self.processes)):
            log = Path(self.folder, f"{rank}.log").read_text(errors="replace")
            stacks.append(frames.stack_of(log.rpartition("most recent call first")[2]))
        return stacks

    def end(self) -> None:
        """Kills the processes: an engine in trouble would not end by itself."""
        for process in self.processes:
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.join()
        for connection in self.connections:
            connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """One group for each number of ranks, made again after trouble and after so many programs."""

    def __init__(self, choice: EngineChoice, cases_of_a_group: int) -> None:
        self.choice = choice
        self.cases_of_a_group = cases_of_a_group
        self.groups: dict[int, Group] = {}
        self.seconds: list[float] = []
        self.groups_made = 0
        self.imported: list[str] = []  # by groups; not yet here
        self.is_frozen = False
        self.warm: set[int] = set()  # numbers of ranks; what groups of them import is here

    def run(
        self, document: dict[str, Any], ranks: int, truth: Truth, view: View = View()
    ) -> RunResult:
        """One program; whatever becomes of it, the pool can run the next."""
        group = self.group_of(ranks)
        limit = self.limit() if ranks in self.warm else FIRST_LIMIT
        is_first = group.cases == 0
        request = {"program": document, "truth": truth, "view": view}
        result = group.run(request, limit)
        self.imported += result.imported
        self.warm |= {ranks} if result.status == "ran" else set()
        has_error = any(seen is None or has_failed(seen) for seen in result.ranks)
        if result.status != "ran" or has_error or group.cases >= self.cases_of_a_group:
            self.end_group(ranks)
        if not is_first:
            self.seconds.append(result.seconds)
        return result

    def group_of(self, ranks: int) -> Group:
        """The running group of so many ranks, or a new one."""
        if ranks not in self.groups:
            self.import_ahead()
            self.groups[ranks] = Group(self.choice, ranks)
            self.groups_made += 1
        return self.groups[ranks]

    def import_ahead(self) -> None:
        """What groups had to import, once for all groups to come: they are forked from here.

        What is here by then is no rank's garbage. A collection in a rank would copy all of it.
        """
        if self.is_frozen and not self.imported:
            return
        for name in self.imported:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        self.imported.clear()
        gc.collect()
        gc.freeze()
        self.is_frozen = True

    def limit(self) -> float:
        """Of the next program, by the median so far."""
        if not self.seconds:
            return FIRST_LIMIT
        median = sorted(self.seconds)[len(self.seconds) // 2]
        return max(LEAST_LIMIT, LIMIT_OVER_MEDIAN * median)

    def end_group(self, ranks: int) -> None:
        """Ends the group of so many ranks."""
        self.groups.pop(ranks).end()

    def end(self) -> None:
        """Ends all groups."""
        for ranks in list(self.groups):
            self.end_group(ranks)


def cpu_seconds_of(process: int) -> float:
    """Of a processor, of its first thread; 0 where the system does not say.

    That thread runs the program; others poll for gloo, whatever the program does.
    """
    try:
        text = Path(f"/proc/{process}/task/{process}/stat").read_text()
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def has_failed(seen: list[dict[str, Any]]) -> bool:
    """Whether a rank's run ended with an error."""
    return bool(seen) and seen[-1]["what"] == "error"
