"""What a digest keeps of one trace: order, states of the hook manager, collectives and norms."""

import gzip
import itertools
import json
import math

from tokens import segments

# Attributes of the manager, and how a digest calls them.
STATE = {
    "remaining_grad_acc_hooks": "remaining",
    "len(_grad_acc_post_hooks)": "post_hooks",
    "backward_active_depth": "depth",
    "backward_seen_this_step": "seen",
    "epilogue_ran_this_backward": "ran",
    "hooks_fired_this_backward": "fired",
    "max_expected_hooks_seen": "expected",
    "post_backward_callback_queued": "queued",
    "post_backward_callback_graph_task_id": "task",
}


def read_records(path):
    """All records of a trace; a last line that was cut off is left out."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return


def settled(tokens):
    """Stage 3 gives parameters back in the order of a set, which is another one in every run."""
    for is_part, run in itertools.groupby(tokens, lambda token: token.startswith("part:")):
        yield from sorted(run) if is_part else run


def order_items(name, events):
    """One line a stretch; a stretch that came before says which it equals."""
    known, count = {}, {}
    for kind, tokens in segments(events):
        if not tokens:
            continue
        count[kind] = count.get(kind, 0) + 1
        label = f"{kind} {count[kind]}"
        text = " ".join(settled(tokens))
        yield f"{name} {label}", f"= {known[text]}" if text in known else text
        known.setdefault(text, label)


def transitions(events):
    """What each call of the manager changed, one text each."""
    open_calls = []
    for event in events:
        if event["k"] == "bhs.call":
            open_calls.append(event)
        elif event["k"] == "bhs.return" and open_calls:
            call = open_calls.pop()
            yield f"{call['method']}: {_change(call.get('state'), event.get('state'))}" + (
                f", returns {event['ret']}" if "ret" in event else ""
            )


def _change(before, after):
    if not before or not after:
        return "raises"
    words = [
        f"{STATE.get(name, name)} {_step(before.get(name), value)}"
        for name, value in after.items()
        if before.get(name) != value
    ]
    return ", ".join(words) or "no change"


def _step(before, after):
    if isinstance(after, bool):
        return f"becomes {after}"
    if after is None or before is None:
        return "is cleared" if after is None else "is set"
    return (
        "becomes 0"
        if after == 0
        else f"{after - before:+d}" if abs(after - before) == 1 else "changes"
    )


def resting_state(events):
    """The state that the last call of each engine's manager left."""
    last = {}
    for event in events:
        if event["k"] == "bhs.return" and event.get("state"):
            last[event.get("engine", 0)] = event["state"]
    return "; ".join(_state(last[engine]) for engine in sorted(last))


def _state(state):
    return " ".join(
        f"{STATE[name]}={int(value or 0)}"
        for name, value in state.items()
        if name in STATE and STATE[name] not in ("task", "post_hooks")
    )


def collectives(events):
    """The collectives in the order of their issue, equal neighbours counted."""
    issued = [f"{e['op']} {e.get('bytes', 0)} B" for e in events if e["k"] == "coll.issue"]
    return ", ".join(
        text if (count := len(list(run))) == 1 else f"{count} x {text}"
        for text, run in itertools.groupby(issued)
    )


def norms(records):
    """Norms of all gradients and parameters before each step, and of the parameters after it."""
    for record in records:
        if record["rec"] == "numbers":
            parts = [
                f"{what} {_norm(record[key])}"
                for what, key in (("gradients", "grad_norm"), ("parameters", "param_norm"))
                if record.get(key)
            ]
            yield f"step {record['step']} {record['when'].split('_')[0]}: {', '.join(parts)}"


def _norm(values):
    known = [float(value) for value in values if value is not None]
    return f"{math.sqrt(sum(value * value for value in known)):.5g}"
