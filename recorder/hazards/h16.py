"""H16: stage 3 keeps an unused parameter's gradient partition and applies it again."""

from h15 import windows
from hazard import main, make, result


def work():
    _, second, third = windows(make(3, gas=2), "a b", "a b", "a a")
    result(
        "H16",
        "stage 3, b first used in micro-batch 1 of the second window",
        second,
        {"a": 1.0, "b": 1.0},
    )
    result("H16", "stage 3, b unused in the third window", third, {"a": 2.0, "b": 0.0})


if __name__ == "__main__":
    main(work)
