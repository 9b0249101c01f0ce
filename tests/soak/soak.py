"""Trains in real processes while they are killed, stopped and starved, and checks what is left.

    tests/soak/soak.py RANK_PROGRAM [--minutes 10] [--ranks 8] [--runs N] [--steps N] [--timeout-s N] [--seed S] [--out FILE.json]

A run trains to a fixed step and is started again after each fault until it gets there. It is right
if its parameters have the bits of a run without faults. Each fault is drawn: a rank is killed,
stopped for a while, stopped for good, loses its connections; the disk is full for a while; fsync
takes long; the wall clock jumps. A start that ends must say why: each rank that lives on prints a
reason within the time-out, or the reason is counted as missing. Exit code 0: all runs are right.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LONGEST_START_S = 240
SAVE_EVERY = 10
CALM_STARTS = 2  # after the last fault
DISK_MIB = 8


@dataclasses.dataclass
class Tally:
    runs: int = 0
    right: int = 0
    starts: int = 0
    reasons_missing: list = dataclasses.field(default_factory=list)
    wrong: list = dataclasses.field(default_factory=list)
    faults: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    ended: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failed_saves: int = 0


class Start:
    """The processes of one start of a run."""

    def __init__(self, options, folder, scratch, stage, use_tcp, extra):
        self.logs = []
        self.processes = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        store = scratch / f"store-{time.monotonic_ns()}"
        for rank in range(options.ranks):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(options.ranks), LOCAL_RANK=str(rank),
                               LOCAL_WORLD_SIZE=str(options.ranks), LD_PRELOAD=str(scratch / "misbehave.so"), **extra(rank))
            if use_tcp:
                environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), ZEROPROOF_STORE_TOKEN="soak" * 8)
            out, err = (open(scratch / f"rank{rank}.{name}", "w+") for name in ("out", "err"))
            self.logs.append((out, err))
            command = [options.program, str(folder), str(stage), str(options.steps), str(SAVE_EVERY), str(1000 * options.timeout_s)]
            self.processes.append(subprocess.Popen(command + ([] if use_tcp else [str(store)]), env=environment, stdout=out, stderr=err))
        self.store = store

    def signal(self, rank, number):
        if self.processes[rank].poll() is None:
            self.processes[rank].send_signal(number)

    def live(self):
        return [rank for rank, process in enumerate(self.processes) if process.poll() is None]

    def read(self, rank, which):
        log = self.logs[rank][which]
        log.flush()
        log.seek(0)
        return log.read()

    def wait(self, seconds):
        """Whether all have ended; who is left after that time is killed."""
        end = time.monotonic() + seconds
        while self.live() and time.monotonic() < end:
            time.sleep(0.05)
        left = self.live()
        for rank in left:
            self.signal(rank, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.store, ignore_errors=True)
        return not left


class Disk:
    """A small file system of its own where root may mount one; else a folder that is never full."""

    def __init__(self, scratch):
        self.path = scratch / "disk"
        self.path.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", self.path], capture_output=True)
        self.is_small = mounted.returncode == 0

    def fill(self):
        with open(self.path / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"\0" * 65536)
            except OSError:
                return

    def empty(self):
        (self.path / "filler").unlink(missing_ok=True)

    def close(self):
        if self.is_small:
            subprocess.run(["umount", "-l", self.path], check=False)


def kill_one(start, rank, _random, _disk):
    start.signal(rank, signal.SIGKILL)


def stop_for_a_while(start, rank, random_, _disk):
    start.signal(rank, signal.SIGSTOP)
    time.sleep(random_.uniform(0.2, 2.0))
    start.signal(rank, signal.SIGCONT)


def stop_for_good(start, rank, _random, _disk):
    start.signal(rank, signal.SIGSTOP)
    end = time.monotonic() + LONGEST_START_S
    while len(start.live()) > 1 and time.monotonic() < end:
        time.sleep(0.1)
    start.signal(rank, signal.SIGKILL)


def break_connections(start, rank, _random, _disk):
    start.signal(rank, signal.SIGUSR1)


def fill_disk(start, _rank, random_, disk):
    disk.fill()
    time.sleep(random_.uniform(0.5, 4.0))
    disk.empty()


# What is done to processes that run, and how they are started.
ACTS = {
    "kill": kill_one,
    "stop": stop_for_a_while,
    "stop for good": stop_for_good,
    "lost connections": break_connections,
    "full disk": fill_disk,
}
SURROUNDINGS = {
    "slow disk": {"SOAK_FSYNC_MS": "60"},
    "clock jumps": {"SOAK_CLOCK_S": "-86400"},
}


def disturb(options, run, random_, disk, start, tally):
    """Does things to a start until it ends; what was done."""
    names = [name for name in ACTS if disk.is_small or name != "full disk"]
    done = []
    while len(done) < run["faults_left"]:
        time.sleep(random_.uniform(0.0, run["seconds"] / 2))
        if not start.live():
            break
        done.append(random_.choice(names))
        tally.faults[done[-1]] += 1
        ACTS[done[-1]](start, random_.randrange(options.ranks), random_, disk)
    run["faults_left"] -= len(done)
    return done


def one_start(options, run, random_, disk, tally):
    """Starts the run, does things to it, and waits for its end. The checksum, if it got there."""
    surrounding = random_.choice([*SURROUNDINGS, ""]) if run["faults_left"] else ""
    victims = set(random_.sample(range(options.ranks), options.ranks // 2))
    start = Start(options, disk.path / run["name"], run["scratch"], run["stage"], run["use_tcp"],
                  lambda rank: SURROUNDINGS.get(surrounding, {}) if rank in victims else {})
    tally.starts += 1
    if surrounding:
        tally.faults[surrounding] += 1
    what = [surrounding, *disturb(options, run, random_, disk, start, tally)]
    came_to_end = start.wait(LONGEST_START_S)
    output = start.read(0, 0)
    tally.failed_saves += sum("save after" in line or "the last save" in line for line in output.splitlines())
    codes = [process.returncode for process in start.processes]
    if all(code == 0 for code in codes):
        return output.split("done ")[-1].strip()
    judge_end(start, codes, came_to_end, what, tally)
    return None


def judge_end(start, codes, came_to_end, what, tally):
    """A rank that was not killed says why it ended."""
    if not came_to_end:
        tally.wrong.append(f"after {what}: ranks did not end in {LONGEST_START_S} s")
    for rank, code in enumerate(codes):
        reason = start.read(rank, 1).strip()
        if code < 0 and code != -signal.SIGKILL:
            tally.wrong.append(f"after {what}: rank {rank} died by signal {-code}")
        elif code > 0 and not reason:
            tally.reasons_missing.append(f"after {what}: rank {rank} ended with {code} and no reason")
        elif code > 0:
            tally.ended[without_numbers(reason.splitlines()[-1])] += 1


def without_numbers(text):
    return re.sub(r"/tmp/\S*?(?=run\d)", "", re.sub(r"\d+", "N", text))[:150]


def one_run(options, number, random_, disk, expected, tally):
    run = {"name": f"run{number}", "scratch": options.scratch, "stage": number % 4, "use_tcp": number // 4 % 2 == 1,
           "seconds": options.seconds, "faults_left": options.faults}
    checksum = None
    for _ in range(options.faults + CALM_STARTS):
        checksum = checksum or one_start(options, run, random_, disk, tally)
    tally.runs += 1
    if checksum == expected[run["stage"]]:
        tally.right += 1
    else:
        tally.wrong.append(f"run {number}, stage {run['stage']}: {checksum} and not {expected[run['stage']]}")
    shutil.rmtree(disk.path / run["name"], ignore_errors=True)


def expected_checksums(options, disk):
    """Of runs without faults, by stage; and how long one takes."""
    expected = []
    began = time.monotonic()
    for stage in range(4):
        run = {"name": f"calm{stage}", "scratch": options.scratch, "stage": stage, "use_tcp": False, "seconds": 0,
               "faults_left": 0}
        checksum = one_start(options, run, random.Random(0), disk, Tally())
        if checksum is None:
            sys.exit(f"stage {stage} does not come to its end without faults; see {options.scratch}")
        expected.append(checksum)
        shutil.rmtree(disk.path / run["name"], ignore_errors=True)
    options.seconds = (time.monotonic() - began) / 4
    return expected


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--faults", type=int, default=5, help="things that are done to the processes of a run")
    parser.add_argument("--timeout-s", type=int, default=20, help="of a rank that waits for others; longer than a crowded machine needs")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args(arguments)
    options.program = str(pathlib.Path(options.program).resolve())
    return options


def report(options, tally, seconds):
    print(f"{tally.runs} runs of {options.ranks} processes, {tally.starts} starts, {sum(tally.faults.values())} faults in "
          f"{seconds:.0f} s: {tally.right} right, {len(tally.wrong)} wrong; {tally.failed_saves} saves failed and were reported")
    for name, count in sorted(tally.faults.items()):
        print(f"  {count:5} {name}")
    print("reasons of ranks that ended:")
    for text, count in tally.ended.most_common(12):
        print(f"  {count:5} {text}")
    for text in tally.wrong + tally.reasons_missing:
        print(f"WRONG {text}")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"seconds": seconds, **vars(tally)}, indent=1) + "\n")


def main(arguments):
    options = parse(arguments)
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        options.scratch = pathlib.Path(scratch)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", options.scratch / "misbehave.so", HERE / "misbehave.c", "-ldl"], check=True)
        disk = Disk(options.scratch)
        try:
            expected = expected_checksums(options, disk)
            random_ = random.Random(options.seed)
            began = time.monotonic()
            for number in range(options.runs):
                if time.monotonic() - began > options.minutes * 60:
                    break
                one_run(options, number, random_, disk, expected, tally)
                if sys.stderr.isatty():
                    print(f"\r{tally.runs} runs, {tally.starts} starts, {len(tally.wrong)} wrong ", end="", file=sys.stderr, flush=True)
        finally:
            disk.close()
    report(options, tally, time.monotonic() - began)
    return 0 if tally.right == tally.runs and not tally.wrong and not tally.reasons_missing else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
