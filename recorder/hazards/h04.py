"""H4: stages 1 and 2 keep only the last of several boundary backwards before one step."""

from hazard import inputs, main, make, result, step


def work():
    for stage in (1, 2):
        engine = make(stage)
        for x in (1, 2):
            engine.backward(engine(inputs(x)))
        result(
            "H4",
            f"stage {stage}, two backwards, gradients 1 and 2",
            step(engine)["a"],
            3.0,
        )


main(work)
