"""H5: stage 0 in fp16 divides gradients by a loss scale that never multiplied the loss."""

from hazard import fp16, inputs, main, make, result, step


def work():
    engine = make(0, fp16=fp16(loss_scale=8))
    engine.backward(engine(inputs(1, engine)))
    result("H5", "stage 0, fp16, loss_scale 8, gradient 1", step(engine)["a"], 1.0)


main(work)
