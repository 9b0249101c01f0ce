#!/usr/bin/env python3
"""An iteration of M267 by a process a GPU beside one by a thread a GPU, in turns.

  bench/cuda/processes_beside_threads.py ZEROPROOF [--world-size N] [--rounds N] [--stages 1,2,3] [--lengths 1024] [--ways eager,graph] [--most 1.01]

A line a stage, length and way, with and without --cuda-graph: the median over the rounds of each side's medians, and their
ratio. Exit code 1 when a ratio is above --most, 77 without as many GPUs. Seen on two H200s: about 14 s a run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def flags_of(stage, length, graph):
    flags = ["train", "--runtime", "cuda", "--model", "m267", "--dtype", "bf16", "--batch", "8", "--length", str(length), "--stage", str(stage)]
    return flags + ["--steps", "40", "--time", "--warmup", "20", "--json"] + (["--cuda-graph"] if graph else [])


def report_of(process):
    out, _ = process.communicate(timeout=120)
    if process.returncode != 0:
        raise RuntimeError(out.decode(errors="replace").strip()[-300:])
    return json.loads(out)


def threads(options, flags):
    command = [options.zeroproof, *flags, "--world-size", str(options.world_size)]
    return report_of(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))


def processes(options, flags, port):
    started = []
    for rank in range(options.world_size):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(options.world_size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        started.append(subprocess.Popen([options.zeroproof, *flags], env=env, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, stderr=subprocess.STDOUT))
    try:
        return report_of(started[0])
    finally:
        if started[0].poll() is None:
            started[0].kill()  # the others end with it
        for process in started:
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", default="1,2,3")
    parser.add_argument("--lengths", default="1024")
    parser.add_argument("--ways", default="eager,graph", help="with --cuda-graph: graph")
    parser.add_argument("--most", type=float, default=1.01)
    options = parser.parse_args()
    doctor = json.loads(subprocess.run([options.zeroproof, "doctor", "--json"], capture_output=True, text=True).stdout)
    if doctor["runtimes"]["gpus"] < options.world_size:
        print(f"skipped: needs {options.world_size} GPUs")
        return 77
    port = 21000 + os.getpid() % 20000
    bad = 0
    for length in options.lengths.split(","):
        for stage in options.stages.split(","):
            for graph in [way == "graph" for way in options.ways.split(",")]:
                flags = flags_of(stage, length, graph)
                sides = {"threads": [], "processes": []}
                for turn in range(options.rounds):
                    port += 1
                    runs = [("threads", lambda: threads(options, flags)), ("processes", lambda: processes(options, flags, port))]
                    for side, run in runs if turn % 2 == 0 else reversed(runs):
                        sides[side].append(run())
                medians = {side: sorted(of["iteration_ms"]["median"] for of in all_of) for side, all_of in sides.items()}
                ms = {side: statistics.median(of) for side, of in medians.items()}
                ratio = ms["processes"] / ms["threads"]
                bad += ratio > options.most
                last = sides["processes"][-1]
                spread = {side: f"{ms[side]:.3f} ms ({of[0]:.3f} to {of[-1]:.3f})" for side, of in medians.items()}
                print(f"stage {stage}, S {length}{', a graph' if graph else ''}: threads {spread['threads']}, processes {spread['processes']}, {last.get('collectives')}: "
                      f"ratio {ratio:.4f}; peak {sides['threads'][-1].get('gpu_peak_bytes')} and {last.get('gpu_peak_bytes')} bytes", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
