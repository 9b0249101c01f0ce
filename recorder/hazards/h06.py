"""H6: a step on which the dynamic loss scale grows divides by the new scale."""

from hazard import fp16, inputs, main, make, result, step


def work():
    for stage in (1, 2, 3):
        engine = make(stage, fp16=fp16(loss_scale=0, initial_scale_power=4, loss_scale_window=1))
        updates = []
        for _ in range(3):
            engine.backward(engine(inputs(1, engine)))
            updates.append(step(engine)["a"])
        result(
            "H6",
            f"stage {stage}, fp16, a loss scale that grows at the second step, gradient 1",
            updates,
            [1.0, 1.0, 1.0],
        )


main(work)
