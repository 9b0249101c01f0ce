#!/usr/bin/env python3
"""Where an iteration's time goes, kernel by kernel: reads what kernel_trace.cpp wrote.

  bench/cuda/kernel_table.py FILE [--iterations N] [--mark adam]

An iteration ends with a kernel whose name contains the mark; the last N count. Prints ms and launches an iteration by
kind, the time in which the device was idle, and the kernels of the kinds that have several.
"""
import argparse
import collections
import re

KINDS = [
    ("attention", r"cudnn|sdpa|attention|flash|fprop|bprop"),
    ("gemm", r"nvjet|gemm|cutlass|splitk|xmma"),
    ("nccl", r"nccl"),
    ("adam", r"adam"),
    ("norm", r"rms_norm|norm"),
    ("gelu", r"gelu"),
    ("rotary", r"rotary"),
    ("cross entropy", r"cross_entropy|mean_loss|cross"),
    ("embedding", r"embedding|bucket|histogram|scan"),
    ("sums of squares", r"squares|non_finite|partial"),
    ("copies", r"copy|memcpy"),
    ("fills", r"fill|memset"),
]


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.search(pattern, name)), "other")


def short(name):
    name = re.sub(r"^_ZN\d*|^void ", "", name)
    return name[:88]


def union_ns(spans):
    busy, end = 0, 0
    for begin, stop in sorted(spans):
        busy += max(0, stop - max(begin, end))
        end = max(end, stop)
    return busy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--mark", default="adam")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--top", type=int, default=40)
    options = parser.parse_args()
    rows = []
    for line in open(options.file):
        device, stream, start, end, name = line.rstrip("\n").split("\t", 4)
        if int(device) == options.device:
            rows.append((int(start), int(end), int(stream), name))
    rows.sort()
    marks = [row[1] for row in rows if options.mark in row[3]]
    count = min(options.iterations, len(marks) - 1)
    begin, end = marks[-1 - count], marks[-1]
    window = [row for row in rows if begin < row[1] <= end]
    total = collections.Counter()
    launches = collections.Counter()
    for start, stop, _, name in window:
        total[name] += stop - start
        launches[name] += 1
    by_kind, kind_launches = collections.Counter(), collections.Counter()
    for name, ns in total.items():
        by_kind[kind_of(name)] += ns
        kind_launches[kind_of(name)] += launches[name]
    scale = 1e6 * count
    busy = union_ns([(max(row[0], begin), row[1]) for row in window])
    print(f"{count} iterations of {(end - begin) / scale:.3f} ms; the device was idle for {(end - begin - busy) / scale:.3f} ms of each")
    spans = {is_nccl: [(max(row[0], begin), row[1]) for row in window if (kind_of(row[3]) == "nccl") == is_nccl]
             for is_nccl in (False, True)}
    if spans[True]:
        print(f"NCCL ran for {union_ns(spans[True]) / scale:.3f} ms, alone for {(busy - union_ns(spans[False])) / scale:.3f}")
    for kind, ns in by_kind.most_common():
        print(f"{ns / scale:8.3f} ms {kind_launches[kind] / count:7.1f} launches  {kind}")
    print("kernels:")
    for name, ns in total.most_common(options.top):
        print(f"{ns / scale:8.3f} ms {launches[name] / count:7.1f} x {ns / launches[name] / 1e3:8.1f} us  {kind_of(name):12} {short(name)}")
    gaps, last = collections.Counter(), begin
    for start, stop, _, name in window:
        if start > last:
            gaps[short(name)[:60]] += start - last
        last = max(last, stop)
    print("waited before:")
    for name, ns in gaps.most_common(8):
        print(f"{ns / scale:8.3f} ms  {name}")


if __name__ == "__main__":
    main()
