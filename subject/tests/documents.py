"""Small documents for tests."""


def document(ranks=1, config=None, modules=None, body=()):
    """A program of one engine."""
    modules = modules or [{"name": "l0", "linear": {"inputs": 1, "outputs": 2}}]
    return {
        "schema": "zeroproof.program/1",
        "world": {"ranks": ranks},
        "config": {"gradient_clipping": 0.0, **(config or {})},
        "models": [{"name": "m", "body": modules}],
        "engines": [{"name": "a", "model": "m"}],
        "body": list(body),
    }


def observation(at, what, values):
    """What a rank saw."""
    return {"at": at, "what": what, "engine": "a", "values": values}


def forward(value, **more):
    return {"forward": {"engine": "a", "as": value, **more}}


def backward(value, **more):
    return {"backward": {"engine": "a", "value": value, **more}}


STEP = {"step": {"engine": "a"}}
