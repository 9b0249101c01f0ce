#!/usr/bin/env python3
"""The engine on GPUs beside the torch engines, in one run and one table.

  bench/cuda/beside_torch.py ZEROPROOF --bench DIR [--gpus N] [--lengths 1024,512] [--turns N] [--best] [--budget SECONDS] [--limit-s N] [--out DIR]

DIR has sweep.sh and torch_baseline.py (../shared/prototype/bench). M267 in bf16, 8 sequences a GPU, medians of 20
iterations after 20. Ours runs, without and with its CUDA graph in N turns, before the torch engines and once more after
them (on several GPUs with the graph alone), so that a drift of the machine shows.
Torch engines that fail are rows that say so. The last column is ours by the best torch engine of that length. On several
GPUs it ends with ratios, weak scaling, memory by the formula, and the overlap efficiency of
docs/spec/performance.md 7, which is 1 - (T(N) - T(N without collectives)) / (reduce-scatter + all-gather alone).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time


def torch_plan(gpus, lengths, best):
    """Most wanted first: what the budget leaves out is at the end."""
    if best and gpus == 1:
        return [{"engine": "single", "seq": length, "compile": "block", "graph": 1, "id": index} for index, length in enumerate(lengths)]
    if gpus == 1:
        rows = [{"engine": "floor"}]
        for length in lengths:
            rows += [{"engine": "single", "seq": length, "compile": "block", "graph": 1},
                     {"engine": "single", "seq": length, "compile": "block"}, {"engine": "single", "seq": length}]
        return [dict(row, id=index) for index, row in enumerate(rows)]
    longest = max(lengths)
    block = {"seq": longest, "compile": "block"}
    ddp = {"engine": "ddp", "bucket_mb": 100, "ddp_bcast": 0}
    fsdp = [{"engine": engine, "local_opt": 1} for engine in ("fsdp2zero2", "fsdp2tuned")]
    megatron = {"engine": "megatron1", "mg_early": 1, "mg_bucket": 8.3e6}
    tuned = [{"engine": "flatzero1"}, *fsdp, ddp]
    rows = [{"engine": "nccl"}] + [{**row, **block, "graph": 1} for row in tuned]
    rows += [{**row, "seq": length, "compile": "block", "graph": 1} for length in lengths if length != longest for row in tuned]
    rows += [{**megatron, **block, "graph": 1}]
    rows += [{**row, **block, **({"fsdp_group": 4} if row in fsdp else {})} for row in (*tuned, megatron)]  # the host binds: fewer, larger units
    rows += [{"engine": engine, "seq": longest} for engine in ("deepspeed1", "deepspeed2", "deepspeed3")]
    return [dict(row, id=index, profile=0) for index, row in enumerate(rows)]


def run_torch(options, out):
    plan = out / "given_plan.jsonl"
    plan.write_text("".join(json.dumps(row) + "\n" for row in torch_plan(options.gpus, options.lengths, options.best)))
    environment = dict(os.environ, PLAN=str(plan), OUT=str(out), NGPU=str(options.gpus), BUDGET=str(options.budget))
    with open(out / "sweep.log", "w") as log:
        subprocess.run(["bash", str(pathlib.Path(options.bench) / "sweep.sh")], env=environment, stdout=log, stderr=log)
    results = out / "results.jsonl"
    return [json.loads(line) for line in results.read_text().splitlines() if line.startswith("{")] if results.exists() else []


SECONDS_OF_OURS = 20


def run_ours(options, stage, length, gpus, flags=()):
    if time.monotonic() + SECONDS_OF_OURS > options.end:
        return {"failed": "no time left"}
    command = [options.zeroproof, "train", "--runtime", "cuda", "--model", "m267", "--dtype", "bf16", "--batch", "8",
               "--steps", "40", "--time", "--warmup", "20", "--world-size", str(gpus), "--stage", str(stage),
               "--length", str(length), "--json", *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        report = json.loads(done.stdout)
        if "iteration_ms" not in report:
            return {"failed": f"exit code {done.returncode}: {done.stdout[-200:]} {done.stderr[-200:]}"}
        return report
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return {"failed": f"{type(error).__name__}: {' '.join(command[1:])}"}


def our_rows(options, when, lengths, flags=(), graphs=(False, True)):
    """With `flags` it is no engine's time, but that of a part of it."""
    rows = []
    for length in lengths:
        cells = ([] if flags else [(0, 1)]) + ([(stage, options.gpus) for stage in (1, 2, 3)] if options.gpus > 1 else [])
        for stage, gpus, graph in [(*cell, graph) for cell in cells for graph in graphs]:
            report = run_ours(options, stage, length, gpus, [*flags, *(["--cuda-graph"] if graph else [])])
            name = (f"zeroproof stage {stage}" if gpus > 1 else "zeroproof unsharded") + (", graph" if graph else "")
            row = {"engine": f"{name}, {when}", "stage": stage, "gpus": gpus, "length": length, "failed": report.get("failed"),
                   "is_cut": bool(flags), "is_graph": graph}
            if not row["failed"]:
                times = report["iteration_ms"]
                formula = sum(report["formula_bytes"].values())
                row.update(ms=times["median"], least=times["least"], most=times["most"],
                           gb=report["gpu_peak_bytes"] / 1e9, memory=report["gpu_peak_bytes"] / formula)
            rows.append(row)
    return rows


def torch_rows(results, gpus):
    rows = []
    for result in results:
        if "s_iter" not in result and not result.get("error"):
            continue
        options = " ".join(f"{key}={value}" for key, value in result.get("conf", {}).items()
                           if key not in ("engine", "seq", "compile", "id", "profile"))
        row = {"engine": f"torch {result.get('engine')} {result.get('compile', '')} {options}".strip(), "gpus": gpus,
               "length": result.get("seq"), "failed": result.get("error"), "is_torch": True}
        if "s_iter" in result:
            row.update(ms=result["s_iter"] * 1e3, least=result["s_min"] * 1e3, gb=result.get("mem_peak_gb"))
        rows.append(row)
    return rows


def floors(results):
    return {int(length): of["floor_ms"] for result in results if result.get("engine") == "floor"
            for length, of in result.get("by_seq", {}).items()}


FSDP = ("fsdp2", "fsdp2tuned")  # that partition the weights
ENGINES = ("zero1", "ddp", "flatzero1", "megatron1", "single", "fsdp2zero2", *FSDP)


def best_torch_ms(rows, length, gpus, engines=ENGINES):
    """Of the engines that train together on several GPUs; None without any."""
    names = [f"torch {engine} " for engine in engines if engine != "single" or gpus == 1]
    times = [row["ms"] for row in rows if row.get("is_torch") and row["length"] == length and row["gpus"] == gpus and "ms" in row
             and any((row["engine"] + " ").startswith(name) for name in names)]
    return min(times, default=None)


def alone_ms(results):
    """Reduce-scatter and all-gather of all weights, each alone."""
    rows = [row for result in results if result.get("engine") == "nccl" for row in result.get("rows", [])]
    whole = next((row for row in rows if row["bytes"] > 5e8 and row["bytes"] < 5.36e8), None)
    return (whole["reduce_scatter"]["us"] + whole["all_gather"]["us"]) / 1e3 if whole else None


def demands(rows, results, gpus):
    """Lines of what is asked for on several GPUs, by the slower of our runs with a graph."""
    def ours(stage, length, key="ms", is_cut=False, is_graph=True):
        values = [row[key] for row in rows if row.get("stage") == stage and row["length"] == length and key in row
                  and row["is_cut"] == is_cut and row.get("is_graph") == is_graph]
        return max(values, default=None)

    lines = []

    def line(text, value, wanted, is_most=True):
        if value is None:
            lines.append(f"{'not run':8} {text}")
            return
        word = "met" if (value <= wanted if is_most else value >= wanted) else "MISSED"
        lines.append(f"{word:8} {text}: {value:.3f}, wanted {'at most' if is_most else 'at least'} {wanted:.2f}")

    def by(above, below):
        return above / below if above and below else None

    alone = alone_ms(results)
    for length in sorted({row["length"] for row in rows if row["length"]}, reverse=True):
        best = best_torch_ms(rows, length, gpus)
        for stage, below, name, wanted in ((1, best, "best torch engine", 0.83), (2, best, "best torch engine", 0.83),
                                           (3, best_torch_ms(rows, length, gpus, FSDP), "best FSDP2", 0.80)):
            line(f"S {length} stage {stage} / {name}", by(ours(stage, length), below), wanted)
        for stage, wanted in ((1, 0.96), (2, 0.96), (3, 0.94)):
            line(f"S {length} stage {stage}: without a graph / with one", by(ours(stage, length, is_graph=False), ours(stage, length)), 1.05)
            line(f"S {length} weak scaling 1 to {gpus}, stage {stage}", by(ours(0, length), ours(stage, length)), wanted, False)
            line(f"S {length} peak memory / formula, stage {stage}", ours(stage, length, "memory"), 1.10)
            exposed = ours(stage, length), ours(stage, length, is_cut=True)
            is_there = alone and None not in exposed
            line(f"S {length} overlap efficiency, stage {stage}" + (f" (exposed {exposed[0] - exposed[1]:.2f} ms of {alone:.2f})"
                 if is_there else ""), 1 - (exposed[0] - exposed[1]) / alone if is_there else None, 0.8, False)
    return lines


def show(rows, floor):
    print(f"{'engine':44} {'GPUs':>4} {'S':>5} {'ms':>8} {'least':>8} {'most':>8} {'GB':>6} {'/formula':>8} {'/torch':>7} {'/floor':>7}")
    cell = lambda value, width, digits: f"{value:{width}.{digits}f}" if value is not None else " " * (width - 1) + "-"
    for row in rows:
        if row["failed"] or "ms" not in row:
            print(f"{row['engine'][:44]:44} {row['gpus']:4} {row['length'] or 0:5} failed: {str(row['failed'])[:80]}")
            continue
        best = best_torch_ms(rows, row["length"], row["gpus"])
        best = row["ms"] / best if best and not row.get("is_torch") and not row.get("is_cut") else None
        above = row["ms"] / floor[row["length"]] if row["gpus"] == 1 and row["length"] in floor else None
        print(f"{row['engine'][:44]:44} {row['gpus']:4} {row['length']:5} {row['ms']:8.2f} {cell(row.get('least'), 8, 2)} "
              f"{cell(row.get('most'), 8, 2)} {cell(row.get('gb'), 6, 2)} {cell(row.get('memory'), 8, 3)} {cell(best, 7, 3)} "
              f"{cell(above, 7, 3)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--bench", required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--lengths", type=lambda text: [int(word) for word in text.split(",")], default=[1024, 512])
    parser.add_argument("--turns", type=int, default=1, help="of ours before the torch engines")
    parser.add_argument("--best", action="store_true", help="on one GPU: of the torch engines the fastest alone, compiled with a CUDA graph")
    parser.add_argument("--budget", type=int, default=300, help="seconds for the torch engines")
    parser.add_argument("--limit-s", type=int, default=3600, help="seconds for all: runs of ours that would come later are left out")
    parser.add_argument("--out", default="out/beside_torch")
    options = parser.parse_args()
    options.end = time.monotonic() + options.limit_s
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for turn in range(options.turns)
            for row in our_rows(options, f"before {turn}" if turn else "before", options.lengths)]
    if options.gpus > 1:
        rows += our_rows(options, "no collectives", [max(options.lengths)], ["--no-collectives"], (True,))
    results = run_torch(options, out)
    after = (options.lengths, (False, True)) if options.gpus == 1 else ([max(options.lengths)], (True,))
    rows += torch_rows(results, options.gpus) + our_rows(options, "after", after[0], graphs=after[1])
    show(rows, floors(results))
    if options.gpus > 1:
        print("\n".join(demands(rows, results, options.gpus)))
    (out / "table.json").write_text(json.dumps(rows, indent=1))
    return 1 if any(row["failed"] for row in rows if not row.get("is_torch")) else 0


if __name__ == "__main__":
    sys.exit(main())
