"""N11: stage 3 without reduce_scatter, gradient_predivide_factor equal to the number of ranks."""

from hazard import control, inputs, main, make, result, step

WORLD = 2


def applied(factor):
    """What a step applies of a gradient of 1 on each rank."""
    zero = {"reduce_scatter": False}  # a factor is refused beside it
    engine = make(3, zero=zero, gradient_predivide_factor=factor)
    engine.backward(engine(inputs(1)))
    return step(engine)["a"]


def work():
    for factor in (1.0, 4.0):
        control("N11", f"factor {factor}, 2 ranks, gradient 1", applied(factor), 1.0)
    result("N11", "factor 2.0, 2 ranks, gradient 1", applied(2.0), 1.0)


main(work, WORLD)
