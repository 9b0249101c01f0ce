"""H21: managed offload loses the gradient of a parameter unused in the boundary micro-batch."""

from h15 import windows
from hazard import main, make, result


def work():
    for stage in (2, 3):
        update = windows(make(stage, gas=2, zero={"offload_optimizer": {"device": "cpu"}}), "a b")[
            0
        ]
        result(
            "H21",
            f"stage {stage}, offload: a in micro-batch 0, b at the boundary",
            update,
            {"a": 1.0, "b": 1.0},
        )


main(work)
