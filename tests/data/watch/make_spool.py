"""Writes what the recorder puts into a spool, and the lines that it makes of it: make_spool.py

Run it in this folder after the recorder's spool or encoder has changed; needs no PyTorch. It writes
two passes: `first.spool` (the file is empty so far) and `second.spool` (after a flush), and
`lines.jsonl`, the records of both.
"""

import marshal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "recorder"))

from zeroproof_recorder.encoder import Encoder, header, line, plain  # noqa: E402
from zeroproof_recorder.spool import FORMAT, SPOOL_VERSION, Spool, packed  # noqa: E402

CLOCK = {"unit": "ns", "source": "CLOCK_MONOTONIC", "mono0": 5, "unix0": 1_700_000_000_000_000_000}


def emitted(t, kind, gt, depth, fields):
    """As session.emitter packs it: what does not change is packed once."""
    return marshal.dumps((t, 0, gt, depth), FORMAT) + packed((kind, plain(fields)))


def base(encoder, passes, has_file, facts):
    begin = {"path": "/x/trace/train__w2_r1.jsonl.gz", "header": header(1, 2, CLOCK, facts)}
    writer = {"events": encoder.events, "records": encoder.records, "size": 100 * passes,
              "path": begin["path"] if has_file else None}
    return packed({"base": plain({"writer": writer, "begin": begin,
                                  "spool": {"version": SPOOL_VERSION, "pass": passes}})})


def first_records():
    big = 1 << 40
    return [
        {"rec": "thread", "th": 0, "name": "Main\u00e9", "main": True},
        {"rec": "param", "id": 0, "name": "l1.weight", "shape": [4, 4], "dtype": "float32",
         "requires_grad": True},
        (big + 1, 0, "mark", -1, 0, {"label": "recorded_step:0", "param": None}),
        (big + 2, 0, "gt.begin", -1, 0, {"call": 0, "inputs": None, "n_roots": 1}),
        (0, 7),
        (big + 3, 0, "bhs.call", 7, 1, {"method": "enter", "engine": 0,
                                        "state": [3, 0, 1, True, False, 0, 3, True, None]}),
        (big + 4, 0, "opt.step", 7, 1, {"lr": [0.1, 1e-05, float("inf"), -3.5], "skipped": False}),
        (big + 5, 0, "gt.end", 7, 0, {"call": 0}),
        (big + 6, 0, "module.fwd_pre", -1, 0, None),
    ]


def second_records():
    big = 1 << 41
    return [
        (big + 1, 0, "coll.issue", -1, 0, {"op": "all_reduce", "cseq": 4, "group": "world",
                                           "bytes": -(1 << 33), "async": False}),
        {"rec": "note", "text": "a note", "observer": "x", "lost": ["coll.*"]},
    ]


def main():
    encoder = Encoder()
    facts = {"program": "train", "producer": {"tool": "zeroproof-recorder"}}
    spool = Spool(HERE / "first.spool", 1 << 12)
    spool.put(base(encoder, 0, False, {"program": "train"}))
    spool.put(base(encoder, 0, False, facts))
    first = first_records()
    for record in first:
        spool.put(packed(plain(record) if isinstance(record, dict) else record))
    spool.put(emitted(1 << 40, "param.post_acc", -1, 0, {"param": "l1.weight", "engine": 0}))
    first.append((1 << 40, 0, "param.post_acc", -1, 0, {"param": "l1.weight", "engine": 0}))
    lines = line(header(1, 2, CLOCK, facts)) + encoder.lines(first, 1)
    again = Spool(HERE / "second.spool", 1 << 12)
    again.put(base(encoder, 1, True, facts))
    for record in second_records():
        again.put(packed(record))
    lines += encoder.lines(second_records(), 1)
    (HERE / "lines.jsonl").write_bytes(lines)


main()
