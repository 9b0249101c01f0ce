"""N4: after one overflow of fp16 autocast every later step is skipped: the scale never shrinks."""

from h07 import OneLinear
from hazard import inputs, main, make, result, step

STEPS = 5


def work():
    for stage in (1, 2, 3):
        autocast = {"enabled": True, "dtype": "float16"}
        engine = make(stage, OneLinear(), torch_autocast=autocast)
        updates = []
        for _ in range(STEPS):
            engine.backward(engine(inputs(512)))
            updates.append(step(engine)["a"])
        result(
            "N4",
            f"stage {stage}, fp16 autocast, gradient 0.125, the first of {STEPS} steps overflows",
            updates,
            [0.0] + [0.125] * (STEPS - 1),
        )


if __name__ == "__main__":
    main(work)
