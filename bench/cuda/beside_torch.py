#!/usr/bin/env python3
"""The engine on GPUs beside the torch engines, in one run and one table.

  bench/cuda/beside_torch.py ZEROPROOF --bench DIR [--gpus N] [--lengths 1024,512] [--turns N] [--best] [--budget SECONDS] [--out DIR]

DIR has sweep.sh and torch_baseline.py (../shared/prototype/bench). M267 in bf16, 8 sequences a GPU, medians of 20
iterations behind 20. Ours runs, without and with its CUDA graph in N turns, before the torch engines and once more behind them, so that a drift of the machine shows.
Torch engines that fail are rows that say so. The last column is ours by the best torch engine of that length.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys


def torch_plan(gpus, lengths, best):
    if best and gpus == 1:
        return [{"engine": "single", "seq": length, "compile": "block", "graph": 1, "id": index} for index, length in enumerate(lengths)]
    rows = [{"engine": "floor"}] if gpus == 1 else []
    for length in lengths:
        if gpus == 1:
            rows += [{"engine": "single", "seq": length, "compile": "block", "graph": 1},
                     {"engine": "single", "seq": length, "compile": "block"},
                     {"engine": "single", "seq": length}]
            continue
        rows += [{"engine": "zero1", "seq": length, "compile": "block"}, {"engine": "ddp", "seq": length, "compile": "block"},
                 {"engine": "single", "seq": length, "compile": "block"},
                 {"engine": "fsdp2", "seq": length, "compile": "block"}, {"engine": "fsdp2", "seq": length}]
        rows += [{"engine": f"deepspeed{stage}", "seq": length} for stage in (2, 3)]
    return [dict(row, id=index) for index, row in enumerate(rows)]


def run_torch(options, out):
    plan = out / "given_plan.jsonl"
    plan.write_text("".join(json.dumps(row) + "\n" for row in torch_plan(options.gpus, options.lengths, options.best)))
    environment = dict(os.environ, PLAN=str(plan), OUT=str(out), NGPU=str(options.gpus), BUDGET=str(options.budget))
    with open(out / "sweep.log", "w") as log:
        subprocess.run(["bash", str(pathlib.Path(options.bench) / "sweep.sh")], env=environment, stdout=log, stderr=log)
    results = out / "results.jsonl"
    return [json.loads(line) for line in results.read_text().splitlines() if line.startswith("{")] if results.exists() else []


def run_ours(options, stage, length, gpus, graph):
    command = [options.zeroproof, "train", "--runtime", "cuda", "--model", "m267", "--dtype", "bf16", "--batch", "8",
               "--steps", "40", "--time", "--warmup", "20", "--world-size", str(gpus), "--stage", str(stage),
               "--length", str(length), "--json"] + (["--cuda-graph"] if graph else [])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        report = json.loads(done.stdout)
        report["iteration_ms"]
        return report
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError) as error:
        return {"failed": f"{type(error).__name__}: {' '.join(command[1:])}"}


def our_rows(options, when):
    rows = []
    for length in options.lengths:
        cells = [(0, 1)] if options.gpus == 1 else [(0, 1), (1, options.gpus), (2, options.gpus), (3, options.gpus)]
        for stage, gpus, graph in [(*cell, graph) for cell in cells for graph in (False, True)]:
            report = run_ours(options, stage, length, gpus, graph)
            name = (f"zeroproof stage {stage}" if gpus > 1 else "zeroproof unsharded") + (", graph" if graph else "")
            row = {"engine": f"{name}, {when}", "gpus": gpus, "length": length, "failed": report.get("failed")}
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
                           if key not in ("engine", "seq", "compile", "id"))
        row = {"engine": f"torch {result.get('engine')} {result.get('compile', '')} {options}".strip(), "gpus": gpus,
               "length": result.get("seq"), "failed": result.get("error"), "is_torch": True}
        if "s_iter" in result:
            row.update(ms=result["s_iter"] * 1e3, least=result["s_min"] * 1e3, gb=result.get("mem_peak_gb"))
        rows.append(row)
    return rows


def floors(results):
    return {int(length): of["floor_ms"] for result in results if result.get("engine") == "floor"
            for length, of in result.get("by_seq", {}).items()}


def show(rows, floor):
    print(f"{'engine':44} {'GPUs':>4} {'S':>5} {'ms':>8} {'least':>8} {'most':>8} {'GB':>6} {'/formula':>8} {'/torch':>7} {'/floor':>7}")
    cell = lambda value, width, digits: f"{value:{width}.{digits}f}" if value is not None else " " * (width - 1) + "-"
    for row in rows:
        if row["failed"] or "ms" not in row:
            print(f"{row['engine'][:44]:44} {row['gpus']:4} {row['length'] or 0:5} failed: {str(row['failed'])[:80]}")
            continue
        rivals = [other["ms"] for other in rows if other.get("is_torch") and other["length"] == row["length"] and "ms" in other
                  and other["gpus"] == row["gpus"]]
        best = row["ms"] / min(rivals) if rivals and not row.get("is_torch") else None
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
    parser.add_argument("--out", default="out/beside_torch")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for turn in range(options.turns) for row in our_rows(options, f"before {turn}" if turn else "before")]
    results = run_torch(options, out)
    rows += torch_rows(results, options.gpus) + our_rows(options, "behind")
    show(rows, floors(results))
    (out / "table.json").write_text(json.dumps(rows, indent=1))
    return 1 if any(row["failed"] for row in rows if not row.get("is_torch")) else 0


if __name__ == "__main__":
    sys.exit(main())
