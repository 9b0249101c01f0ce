"""Order tokens (docs/reference/trace_format.md, section 11), without numbers of collectives."""

import re

# What a token is made of, by kind of event; a kind that is missing has no token.
FORMS = {
    "param.post_acc": "acc:{param}",
    "param.tensor_hook": "th:{param}",
    "tensor.hook": "h:{label}",
    "multi.hook": "mh:{label}",
    "module.fwd_pre": "fpre:{module}",
    "module.fwd_post": "fpost:{module}",
    "module.bwd_pre": "bpre:{module}",
    "module.bwd_post": "bpost:{module}",
    "node.prehook": "npre:{label}",
    "node.posthook": "npost:{label}",
    "gt.begin": "gt+",
    "gt.end": "gt-",
    "cb.queue": "cbq:{label}",
    "cb.begin": "cb+:{label}",
    "cb.end": "cb-:{label}",
    "ckpt.forward_begin": "cf+:{label}",
    "ckpt.forward_end": "cf-:{label}",
    "ckpt.recompute_begin": "rc+:{label}",
    "ckpt.recompute_end": "rc-:{label}",
    "fn.forward_begin": "fn+:{label}",
    "fn.forward_end": "fn-:{label}",
    "fn.backward_begin": "bn+:{label}",
    "fn.backward_end": "bn-:{label}",
    "ft.push": "ft+:{kind}{level}",
    "ft.pop": "ft-:{kind}{level}",
    "bucket.ready": "bucket:{index}",
    "exc": "exc:{type}",
    "mark": "m:{label}",
    "zmod.fetch": "fetch:{module}",
    "zmod.release": "release:{module}",
    "zparam.gather_begin": "gather+:{params}",
    "zparam.gather_end": "gather-:{params}",
    "zparam.partition": "part:{params}",
    "bucket.add": "badd:{param}",
    "bucket.flush": "bflush:{params}",
    "coll.issue": "coll:{op}",
    "opt.step": "optstep",
    "opt.zero_grad": "zero_grad",
    "engine.call": "e+:{method}",
}
# Fields that end a token, by kind.
FLAGS = {
    "tensor.hook": ("none",),
    "param.tensor_hook": ("none",),
    "gt.end": ("exc",),
    "ckpt.recompute_end": ("early_stop", "exc"),
}
# Of the engine's own calls, those that bracket a backward.
ENGINE_CALLS = ("engine.backward_prologue", "engine.backward_epilogue")
# A callback is called by its own name: which one of the job it was, and who made it, is left out.
CALLBACK = re.compile(r"^\d+:|#\d+$|[\w<>.]+\.(?=\w)")


def token(event):
    """The token of an event; None for one that is no part of the order."""
    form = FORMS.get(event["k"])
    if form is None or event["k"] == "engine.call" and event["method"] not in ENGINE_CALLS:
        return None
    fields = dict(event, params=",".join(map(str, event.get("params") or ())))
    if event["k"].startswith("cb."):
        fields["label"] = CALLBACK.sub("", event["label"])
    flags = [flag for flag in FLAGS.get(event["k"], ()) if event.get(flag)]
    return ":".join([form.format_map(fields), *flags])


def segments(events):
    """(kind, tokens) of each stretch: `backward` is an outermost graph task, `outside` the rest."""
    tokens, depth = [], 0
    for event in events:
        begins, ends = event["k"] == "gt.begin", event["k"] == "gt.end"
        if begins and depth == 0:
            yield "outside", tokens
            tokens = []
        depth += begins - ends
        word = token(event)
        if word is not None:
            tokens.append(word)
        if ends and depth == 0:
            yield "backward", tokens
            tokens = []
    yield "backward" if depth else "outside", tokens
