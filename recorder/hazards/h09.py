"""H9: a manual backward without scale() is accepted under a static fp16 loss scale."""

from hazard import error_of, fp16, inputs, main, make, result, step


def work():
    for stage in (2, 3):
        engine = make(stage, fp16=fp16(loss_scale=8))
        error = error_of(engine(inputs(1, engine)).backward)
        update = step(engine)["a"]
        result(
            "H9",
            f"stage {stage}, fp16, loss_scale 8, gradient 1",
            f"{error}, {update} applied",
            "RuntimeError: Loss scaling is required",
            error == "no error",
        )


main(work)
