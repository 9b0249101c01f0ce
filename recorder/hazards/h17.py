"""H17: the first pass of stage 3 releases persistent parameters too."""

from deepspeed.runtime.zero.partition_parameters import ZeroParamStatus
from hazard import inputs, main, make, result


def work():
    engine = make(3, zero={"stage3_param_persistence_threshold": 1000})
    seen = []
    for _ in range(2):
        engine(inputs(1))
        weight = engine.module.a.weight
        seen.append((weight.ds_persist, weight.ds_status == ZeroParamStatus.AVAILABLE))
    result(
        "H17",
        "stage 3, (persistent, available) after the first and second forward",
        seen,
        [(True, True), (True, True)],
    )


main(work)
