"""Flight-recorder dumps of many ranks, of which one leaves out the last collective.

usage: scale_dumps.py FOLDER [--ranks 1024] [--entries 130] [--missing 17] [--groups 8]

Each rank has the world and one group of `--groups` ranks; entries alternate between them. All but
rank `--missing` wait in a last all_reduce of the world.
"""
import argparse
import json
import os


def entry(record, group, desc, number, state):
    return {
        "record_id": record, "pg_id": int(group != "0"), "process_group": [group, desc],
        "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number, "is_p2p": False,
        "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18 + record,
        "input_sizes": [[1024, 16]], "output_sizes": [[1024, 16]], "input_dtypes": ["Float"],
        "output_dtypes": ["Float"], "state": state, "retired": state == "completed",
        "timeout_ms": 600000,
        "frames": [{"name": "step", "filename": "train.py", "line": 31}],
    }


def dump(rank, args):
    base = rank // args.groups * args.groups
    own = f"{1 + rank // args.groups}"
    members = list(range(base, min(base + args.groups, args.ranks)))
    entries = []
    numbers = {"0": 0, own: 0}
    for record in range(args.entries):
        group, desc = ("0", "default_pg") if record % 2 else (own, "TENSOR_MODEL_PARALLEL_GROUP")
        numbers[group] += 1
        entries.append(entry(record, group, desc, numbers[group], "completed"))
    if rank != args.missing:
        entries.append(entry(args.entries, "0", "default_pg", numbers["0"] + 1, "started"))
    groups = {
        "0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(args.ranks)))},
        own: {"name": own, "desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": str(members)},
    }
    return {"version": "2.10", "pg_config": groups, "pg_status": {}, "entries": entries}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--entries", type=int, default=130)
    parser.add_argument("--missing", type=int, default=17)
    parser.add_argument("--groups", type=int, default=8)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for rank in range(args.ranks):
        with open(os.path.join(args.folder, f"nccl_trace_rank_{rank}"), "w") as out:
            json.dump(dump(rank, args), out)


if __name__ == "__main__":
    main()
