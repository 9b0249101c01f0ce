"""Manager scripts on the installed DeepSpeed, as items of a digest."""

import hashlib
import json
import sys

import manager_scripts
from replays import judge
from trace_items import read_records, transitions

SCRIPTS = 20


def record(out, _zeroproof):
    """Writes the scripts of both modes, where this release has a manager."""
    written = list(manager_scripts.write_scripts(out, SCRIPTS))
    print(f"manager scripts: {len(written)}", file=sys.stderr, flush=True)


def read(digest, out, zeroproof):
    """What the manager did in each script."""
    paths = sorted(out.glob("*.jsonl.gz"))
    if not paths:
        digest.add("manager.script", "all", "this release has no BackwardHookStateManager")
        return
    for path in paths:
        events = [record for record in read_records(path) if record["rec"] == "ev"]
        name = path.name.split(".")[0].removeprefix("manager_")
        digest.add("manager.script", name, _summary(events))
        for text in transitions(events):
            digest.add("manager.state", f"{name.split('_')[0]} {text}")
    if zeroproof:
        digest.add("manager.replay", "all", judge(zeroproof, out, "").text()[:300])


def _summary(events):
    """Counts of calls and epilogues, the hash of all states, and the state at the end."""
    states = [e.get("state") for e in events if e["k"].startswith("bhs.")]
    epilogues = sum(e["k"] == "engine.call" and e["method"] == "epilogue" for e in events)
    digest = hashlib.sha256(json.dumps(states).encode()).hexdigest()[:12]
    depth = states[-1]["backward_active_depth"] if states and states[-1] else 0
    counts = f"{len(states) // 2} calls, {epilogues} epilogues"
    return f"{counts}, depth {depth} at the end, states {digest}"
