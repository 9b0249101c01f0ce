"""H14: stage 1 with overlap_comm reduces only parameters that fire in the boundary micro-batch."""

import os

from hazard import control, inputs, main, make, result, step

WORLD = 2


def work():
    rank = int(os.environ["RANK"])
    for overlaps in (False, True):
        engine = make(1, gas=2, zero={"overlap_comm": overlaps})
        for use in ("a", "b"):
            engine.backward(engine(inputs(2 + 4 * rank), use))
            update = step(engine)
        say = result if overlaps else control
        say(
            "H14",
            f"stage 1, overlap_comm {overlaps}, gradients 1 and 3 of two ranks, "
            "a in the first micro-batch",
            update,
            {"a": 2.0, "b": 2.0},
        )


main(work, WORLD)
