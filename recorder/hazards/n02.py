"""N2: after engine.backward of a sum of two forwards, no manual backward gets an epilogue."""

from hazard import control, inputs, main, make, result, step, step_or_error


def work():
    for stage in (1, 2, 3):
        engine = make(stage)
        engine.backward(engine(inputs(1)) + engine(inputs(2)))
        control(
            "N2",
            f"stage {stage}, engine.backward(engine(x1) + engine(x2)), gradients 1 and 2",
            step(engine)["a"],
            3.0,
        )
        engine(inputs(1)).backward()
        result(
            "N2",
            f"stage {stage}, then loss.backward(), gradient 1",
            step_or_error(engine),
            1.0,
        )


main(work)
