"""The process of one rank of a group; or of all replicas of the plain engine."""

from __future__ import annotations

import ctypes
import datetime
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from zeroproof_subject import device, engines
from zeroproof_subject.engine import Truth, View
from zeroproof_subject.interpreter import Interpreter
from zeroproof_subject.program import Program, parse


PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Place:
    """Which rank a process is, and where its group meets."""

    rank: int
    ranks: int
    store: str  # a file
    log: str  # what the process prints


@dataclass(frozen=True)
class EngineChoice:
    """An engine by name, and its options."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def is_plain(self) -> bool:
        """All ranks are in one process."""
        return self.name == "plain"


def serve(connection: Connection, choice: EngineChoice, place: Place) -> None:
    """Runs each program that arrives, and answers with what the rank saw. Never returns."""
    end_with_parent()
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Where a rank hangs: the pool asks for it.
    faulthandler.register(signal.SIGUSR1, file=log, all_threads=False)
    module = engines.load(choice.name)
    if not choice.is_plain:
        join_group(place)
    gc.freeze()  # not collected first: that would copy what the pool's process shares
    known = set(sys.modules)
    while True:
        request = connection.recv()
        if request is None:
            os._exit(0)
        started = time.perf_counter()
        program = parse(request["program"])
        if choice.is_plain:
            seen = run_replicas(program, request["truth"])
        else:
            seen = [run_rank(program, place, module, dict(choice.options), request["view"])]
        # What a group imports at its first program; a later group then has it from the start.
        imported = sorted(set(sys.modules) - known)
        known.update(imported)
        seconds = time.perf_counter() - started
        connection.send({"seen": seen, "seconds": seconds, "imported": imported})


def end_with_parent() -> None:
    """A rank that waits in a collective would not see that its pool was killed."""
    parent = multiprocessing.parent_process()
    if sys.platform != "linux" or parent is None:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:
        os._exit(0)  # it was killed before


def join_group(place: Place) -> None:
    """A group of all ranks on this machine: NCCL on GPUs, gloo on CPUs."""
    import torch.distributed as dist

    os.environ.update(
        RANK=str(place.rank),
        LOCAL_RANK=str(place.rank),
        WORLD_SIZE=str(place.ranks),
        LOCAL_SIZE=str(place.ranks),
        ZEROPROOF_FOLDER=os.path.dirname(place.store),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="0",
        GLOO_SOCKET_IFNAME="lo",
    )
    store = dist.FileStore(place.store, place.ranks)
    limit = datetime.timedelta(seconds=600)  # the pool's own limit is shorter
    backend = device.enter(place.rank, place.ranks)
    dist.init_process_group(
        backend, store=store, rank=place.rank, world_size=place.ranks, timeout=limit
    )


def run_rank(
    program: Program, place: Place, module: Any, options: dict[str, Any], view: View
) -> list[dict]:
    """What one rank saw; the last observation is the error, where there was one."""
    interpreter = Interpreter(
        program,
        (place.rank + view.shift) % place.ranks,
        lambda job: module.make(replace(job, rank=place.rank), **options),
        view.loss_factor,
    )
    has_failed = False
    try:
        interpreter.run()
    except Exception:
        has_failed = True  # seen already
    seen = [one.document() for one in interpreter.seen]
    if not has_failed:
        interpreter.close()
    return seen


def run_replicas(program: Program, truth: Truth) -> list[list[dict]]:
    """What every rank has to see, by plain PyTorch."""
    from zeroproof_subject.engines.plain import PlainEngine, Replicas

    replicas = Replicas(program.ranks)
    seen: list[list[dict]] = [[] for _ in range(program.ranks)]

    def run(rank: int) -> None:
        interpreter = Interpreter(
            program, rank, lambda job: PlainEngine(job, replicas, truth), is_truth=True
        )
        try:
            interpreter.run()
        except Exception:
            replicas.barrier.abort()
        seen[rank] = [one.document() for one in interpreter.seen]

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(program.ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen
