#!/usr/bin/env python3
"""What hooks cost in the real step: `exact` and `deepspeed-0.18.5` in turns, at 147, 1,023 and 8,187 parameters.

  bench/cuda/hook_pairs.py ZEROPROOF [--turns 2] [--limit-s 300]

M267, and the small decoder with as many layers as it takes, in stage 2 on one GPU. deepspeed-0.18.5 counts the used parameters in
every hook, so its work grows with their square. Prints the medians of both in turns, the spread of the same version, and
the count of checks. At 8,187 a step of deepspeed-0.18.5 takes two minutes: one step after another, in one turn. Exit code 1 where
a run failed.
"""
import argparse
import json
import subprocess
import sys

POLICIES = ("exact", "deepspeed-0.18.5")
MODELS = [
    (147, ["--model", "m267", "--batch", "8", "--length", "1024", "--steps", "40", "--warmup", "20"], None),
    (1023, ["--model", "tiny", "--layers", "170", "--batch", "1", "--length", "64", "--steps", "20", "--warmup", "8"], None),
    (8187, ["--model", "tiny", "--layers", "1364", "--batch", "1", "--length", "64", "--steps", "2", "--warmup", "1"], 1),
]


def median_ms(options, flags, policy):
    command = [options.zeroproof, "train", "--runtime", "cuda", "--world-size", "1", "--stage", "2", "--dtype", "bf16", "--time", "--json"]
    try:
        done = subprocess.run([*command, *flags, "--policy", policy], capture_output=True, text=True, timeout=options.limit_s)
        return json.loads(done.stdout)["iteration_ms"]["median"]
    except (subprocess.TimeoutExpired, json.JSONDecodeError, KeyError) as error:
        print(f"failed: {' '.join(flags)} --policy {policy}: {type(error).__name__}", flush=True)
        return None


def line_of(parameters, times):
    """`times`: {policy: medians in ms}"""
    exact, quadratic = (sum(times[policy]) / len(times[policy]) for policy in POLICIES)
    spread = max(max(of) - min(of) for of in times.values())
    apart = quadratic - exact
    word = f"{apart / parameters ** 2 * 1e6:.2f} ns a check" if apart > spread else "within the spread"
    listed = "; ".join(f"{policy} " + ", ".join(f"{ms:.2f}" for ms in times[policy]) for policy in POLICIES)
    return (f"{parameters:5} parameters: {listed} ms; {apart:+.2f} ms ({apart / exact:+.1%}) for {parameters ** 2} checks; "
            f"spread of one version {spread:.2f} ms: {word}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zeroproof")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=300, help="of one run")
    options = parser.parse_args()
    failed = False
    for parameters, flags, turns in MODELS:
        times = {policy: [] for policy in POLICIES}
        for _ in range(turns or options.turns):
            for policy in POLICIES:
                times[policy].append(median_ms(options, flags, policy))
        if None in times["exact"] + times["deepspeed-0.18.5"]:
            failed = True
            continue
        print(line_of(parameters, times), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
