"""N6: a loss of two engines is divided by the accumulation steps of the first alone."""

from hazard import inputs, main, make, result, step


def work():
    for stage in (1, 2, 3):
        first, second = make(stage, gas=2), make(stage, gas=4)
        updates = {}
        for _ in range(4):
            first.backward(first(inputs(1)) + second(inputs(1)))
            updates["GAS 2"] = step(first)["a"]
            updates["GAS 4"] = step(second)["a"]
        result(
            "N6",
            f"stage {stage}, first.backward(first(x) + second(x)), GAS 2 and 4, gradient 1",
            updates,
            {"GAS 2": 1.0, "GAS 4": 1.0},
        )


main(work)
