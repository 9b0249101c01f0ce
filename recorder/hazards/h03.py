"""H3: stage 3 counts micro-steps by forwards, so a second backward overwrites the first."""

from hazard import inputs, main, make, result, step


def work():
    engine = make(3)
    for loss in [engine(inputs(x)) for x in (1, 2)]:
        engine.backward(loss)
    result(
        "H3",
        "stage 3, forward forward backward backward, gradients 1 and 2",
        step(engine)["a"],
        3.0,
    )


main(work)
