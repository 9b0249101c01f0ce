"""H15: CPU-offloaded accumulators and gradient slices of stages 1 and 2 outlive their window."""

from hazard import inputs, main, make, result, step


def windows(engine, *uses):
    updates = []
    for use in uses:
        for micro in use.split():
            engine.backward(engine(inputs(2), micro))
            update = step(engine)
        updates.append(update)
    return updates


def work():
    offload = {"offload_optimizer": {"device": "cpu"}}
    for stage in (1, 2):
        update = windows(make(stage, gas=2, zero=offload), "ab ab", "a a")[1]
        result(
            "H15",
            f"(i) stage {stage}, offload: b unused in the second window",
            update,
            {"a": 2.0, "b": 0.0},
        )
    update = windows(make(2, gas=2, zero=offload), "ab ab", "a ab")[1]
    result(
        "H15",
        "(ii) stage 2, offload: b first used in micro-batch 1 of the second window",
        update,
        {"a": 2.0, "b": 1.0},
    )


if __name__ == "__main__":
    main(work)
