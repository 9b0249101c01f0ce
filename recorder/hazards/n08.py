"""N8: unmanaged accumulation with offload applies an old gradient again."""

from hazard import inputs, main, make, not_run, result, step

EXPECTED = {"a": 3.0, "b": 0.0}


def second_window(engine):
    """`b` takes part in the first window alone."""
    for use in ("ab", "a"):
        for x in (1, 2):
            engine.backward(engine(inputs(x), use))
        update = step(engine)
    return update


def work():
    for stage in (1, 2, 3):
        case = f"stage {stage}, offload, unmanaged: b unused in the second window"
        engine = make(
            stage,
            zero={"offload_optimizer": {"device": "cpu"}},
            managed_gradient_accumulation=False,
        )
        if hasattr(engine, "managed_gradient_accumulation"):
            result("N8", case, second_window(engine), EXPECTED)
        else:
            not_run("N8", case, "no managed_gradient_accumulation in this release", EXPECTED)


main(work)
