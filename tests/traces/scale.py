#!/usr/bin/env python3
"""Makes the files of a large job out of the two files of a small one.

    scale.py R0.jsonl.gz R1.jsonl.gz OUT --ranks 4096 [--events 200000] [--fault missing:17]

Rank 0 is the first file; every other rank is the second under its own number. `--events` repeats
the events until a file has that many. A fault befalls one rank:

    missing:R   the rank leaves no file
    stops:R     the rank's file ends before its last quarter of collectives, and the other ranks
                wait in the next one until they are killed
    skips:R     the rank leaves out one collective in the middle; its numbers move up
"""

import argparse
import gzip
import json
import re
import sys
from pathlib import Path

END = b'{"rec":"end"'
EVENT = b'{"rec":"ev"'


def lines_of(path):
    opened = gzip.open(path) if str(path).endswith(".gz") else open(path, "rb")
    with opened as file:
        return [line for line in file.read().split(b"\n") if line]


class Recording:
    """One small file: its header, its other records, and its events, as bytes."""

    def __init__(self, path, ranks):
        self.header, self.head, self.events = None, [], []
        for line in lines_of(path):
            if line.startswith(b'{"rec":"header"'):
                self.header = json.loads(line)
            elif line.startswith(EVENT):
                self.events.append(line)
            elif line.startswith(END):
                continue
            elif line.startswith(b'{"rec":"group"'):
                self.head.append(self._group(line, ranks))
            else:
                self.head.append(line)

    @staticmethod
    def _group(line, ranks):
        record = json.loads(line)
        record["ranks"] = list(range(ranks))
        return json.dumps(record, separators=(",", ":")).encode()

    def stretched(self, count):
        """The events, again and again, with clocks, calls and collective numbers that go on."""
        if not count:
            return self.events
        parsed = [json.loads(line) for line in self.events]
        last = {key: max((event.get(key) or 0) for event in parsed) + 1 for key in ("lc", "call")}
        tasks = max(event["gt"] for event in parsed) + 1
        time = max(event["t"] for event in parsed) + 1
        numbers = {}
        for event in parsed:
            if event["k"] == "coll.issue":
                group = event.get("group")
                numbers[group] = max(numbers.get(group, 0), event["cseq"] + 1)
        out = []
        turn = 0
        while len(out) < count:
            for event in parsed:
                one = dict(event)
                one["lc"] += turn * last["lc"]
                one["t"] += turn * time
                for key, step in (("gt", tasks), ("call", last["call"]), ("parent", last["call"])):
                    if one.get(key, -1) >= 0:
                        one[key] += turn * step
                if "cseq" in one:
                    one["cseq"] += turn * numbers[one.get("group")]
                    one["key"] = f"{one.get('group')}:{one['cseq']}"
                out.append(json.dumps(one, separators=(",", ":")).encode())
            turn += 1
        return out


def number_of(line):
    found = re.search(rb'"cseq":(\d+)', line)
    return int(found.group(1)) if found and b'"k":"coll.' in line else None


def last_numbers(events):
    return sorted({number_of(line) for line in events} - {None})


def without_rest(events, share):
    """Up to the completion of the collective at `share` of all."""
    numbers = last_numbers(events)
    last = numbers[int(len(numbers) * share)]
    end = max(at for at, line in enumerate(events) if number_of(line) == last)
    return events[: end + 1], last


def waiting(events, last):
    """Up to the issue of the collective after `last`, which never completes."""
    end = next(
        at for at, line in enumerate(events) if (number_of(line) or 0) > last and b"coll.issue" in line
    )
    return events[: end + 1]


def without_one(events):
    numbers = last_numbers(events)
    skipped = numbers[len(numbers) // 2]
    out = []
    for line in events:
        number = number_of(line)
        if number == skipped:
            continue
        if number is not None and number > skipped:
            line = re.sub(rb'"cseq":\d+', b'"cseq":%d' % (number - 1), line)
            line = re.sub(rb'"key":"([^":]*):\d+"', rb'"key":"\1:%d"' % (number - 1), line)
        out.append(line)
    return out


def text_of(recording, events, rank, ranks, is_killed):
    header = dict(recording.header, rank=rank, world=ranks)
    lines = [json.dumps(header, separators=(",", ":")).encode(), *recording.head]
    number = b'"r":%d,' % rank
    lines += [re.sub(rb'"r":\d+,', number, line, count=1) for line in events]
    records = len(recording.head) + len(events)
    if is_killed:
        note = "the process ended without closing its recording; this is what it had recorded by then"
        lines.append(json.dumps({"rec": "note", "text": note}, separators=(",", ":")).encode())
        records += 1
    lines.append(b'{"rec":"end","events":%d,"records":%d}' % (len(events), records))
    return b"\n".join(lines) + b"\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--fault", default="")
    args = parser.parse_args()
    kind, _, odd = args.fault.partition(":")
    if kind not in ("", "missing", "stops", "skips"):
        sys.exit(f"scale.py: unknown fault '{kind}': name missing, stops or skips")
    odd = int(odd) if odd else -1
    args.out.mkdir(parents=True, exist_ok=True)
    recordings = [Recording(path, args.ranks) for path in (args.first, args.second)]
    usual = [recording.stretched(args.events) for recording in recordings]
    if kind == "stops":
        stopped, last = without_rest(usual[min(odd, 1)], 0.75)
        usual = [waiting(events, last) for events in usual]
    for rank in range(args.ranks):
        which = min(rank, 1)
        events = usual[which]
        if rank == odd and kind == "missing":
            continue
        if rank == odd and kind == "stops":
            events = stopped
        if rank == odd and kind == "skips":
            events = without_one(events)
        text = text_of(recordings[which], events, rank, args.ranks, kind == "stops" and rank != odd)
        with gzip.GzipFile(args.out / f"job_r{rank}.jsonl.gz", "wb", 1, mtime=0) as file:
            file.write(text)


if __name__ == "__main__":
    main()
