"""N1: a manual backward of a loss that sums two forwards gets no epilogue."""

from hazard import inputs, main, make, result, step_or_error


def work():
    for stage in (1, 2, 3):
        engine = make(stage)
        (engine(inputs(1)) + engine(inputs(2))).backward()
        result(
            "N1",
            f"stage {stage}, (engine(x1) + engine(x2)).backward(), gradients 1 and 2",
            step_or_error(engine),
            3.0,
        )


main(work)
