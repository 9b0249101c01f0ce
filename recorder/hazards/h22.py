"""H22: engine.backward on a loss beside the engine's outputs does not divide it."""

from hazard import inputs, main, make, result, step


def work():
    for stage in (1, 2):
        engine = make(stage, gas=2)
        for _ in range(2):
            engine(inputs(0), "b")
            engine.backward(engine.module.a(inputs(1)).sum())
            update = step(engine)
        result(
            "H22",
            f"stage {stage}, GAS 2, a loss made by engine.module.a alone",
            update["a"],
            1.0,
        )


main(work)
