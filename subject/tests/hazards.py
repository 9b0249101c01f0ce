"""The smallest programs that show DeepSpeed's known hazards (docs/reference/hazards.md)."""

from documents import STEP, backward, document, forward

TWO_LAYERS = [
    {"name": "l0", "linear": {"inputs": 1, "outputs": 2}},
    {"name": "l1", "custom": {"shape": [3]}},
]
TILED = [TWO_LAYERS[0], {"name": "l2", "tiled": {"body": [TWO_LAYERS[1]]}}]
EXPERTS = [TWO_LAYERS[0], {"name": "l1", "experts": {"experts": 2}}]
IN_TWO_CHECKPOINTS = [
    {"name": "c1", "checkpoint": {"body": [{"name": "l2", "custom": {"shape": [2]}}]}},
    {"name": "c2", "checkpoint": {"body": [{"name": "l3", "shared": {"module": "l2"}}]}},
]
ZERO_GRAD = {"zero_grad": {"engine": "a"}}
ON_CPU = {"zero_optimization": {"offload_optimizer": {"device": "cpu"}}}
TWO_STEPS = {"gradient_accumulation_steps": 2}
UNMANAGED = {"managed_gradient_accumulation": False}


def fp16(scale, window=1000):
    """A scale of 0 is dynamic, and begins with 8."""
    more = {"initial_scale_power": 3, "hysteresis": 1, "loss_scale_window": window}
    return {"fp16": {"enabled": True, "loss_scale": scale, **more}}


BF16 = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}}


def by_tensor(value, **more):
    """value.backward()."""
    return {"backward": {"value": value, **more}}


def sum_of(*values):
    return {"sum": {"values": list(values), "as": "s"}}


def micro_batch(without=""):
    """A forward, its backward and step(); a module that does not run."""
    skips = [{"module": without}] if without else []
    return [forward("g", skips=skips), backward("g"), STEP]


def failing(do_backward):
    """A backward in which a hook raises, then another forward and backward."""
    hook = {"at": "gradient", "module": "l0", "body": [{"raise": {}}]}
    retry = do_backward("h")
    failed = [forward("g", hooks=[hook]), {"catch": {"body": [do_backward("g")]}}]
    return [*failed, ZERO_GRAD, forward("h"), retry, STEP]


def program(body, modules=TWO_LAYERS, **config):
    sgd = {"type": "SGD", "params": {"lr": 0.125}}
    return document(ranks=2, config={"optimizer": sgd, **config}, modules=modules, body=body)


def in_dataclass(document_of_it):
    document_of_it["models"][0]["container"] = "dataclass"
    return document_of_it


CALL = {"call_module": {"engine": "a", "module": "l0", "as": "h"}}
PAST_ENGINE = [forward("g", skips=[{"module": "l0"}]), CALL, sum_of("g", "h"), by_tensor("s"), STEP]
TWO_FORWARDS = [forward("g"), forward("h")]
SUMMED = [*TWO_FORWARDS, sum_of("g", "h")]



def with_activations(document_of_it):
    """forward returns the loss and what it is made of, as (loss, logits)."""
    document_of_it["models"][0]["returns_activations"] = True
    return document_of_it


BY_HAND = [forward("g"), by_tensor("g"), STEP]
KEEP = by_tensor("g", retain_graph=True)
OWN_WEIGHT = [*TWO_LAYERS[:1], {"name": "l2", "own_weight": {"elements": 1}}]

# Leaf modules of stage 3 that run twice in one backward.
EXPERTS_SUMMED = [
    forward("g", expert=0, inputs_need_grad=True),
    forward("h", expert=1, inputs_need_grad=True),
    sum_of("g", "h"),
    backward("s"),
    STEP,
]
# A backward of a loss without its loss scale, which is dropped.
UNSCALED = [forward("g"), by_tensor("g"), ZERO_GRAD, *micro_batch()]
UNSCALED_TWICE = [forward("g"), by_tensor("g"), forward("h"), by_tensor("h")]
LOSS_SCALING = "backward_without_loss_scaling"
UNSCALED_IS_REFUSED = {"body/1": LOSS_SCALING}

# The end of the id of the known finding, stages, and the program.
HAZARDS = [
    ("h1", (2, 3), program(failing(backward))),
    ("h2", (1, 2, 3), program([forward("g"), by_tensor("g", retain_graph=True), by_tensor("g"), STEP])),
    ("h2", (1, 2, 3), program([*TWO_FORWARDS, backward("g"), by_tensor("h"), STEP])),
    ("h2", (2,), program([*TWO_FORWARDS, by_tensor("g"), by_tensor("h"), forward("k"), backward("k")])),
    ("h2", (3,), program([*TWO_FORWARDS, by_tensor("g"), by_tensor("h")])),
    (
        "prologue_once_a_forward",
        (2, 3),
        program([forward("g"), KEEP, forward("h"), by_tensor("g"), STEP]),
    ),
    ("h3", (3,), program([*TWO_FORWARDS, backward("g"), backward("h"), STEP])),
    ("h4", (1, 2), program([*TWO_FORWARDS, backward("g"), backward("h"), STEP])),
    (
        "initial_step",
        (0,),
        document(
            config={
                "bf16": {"enabled": True},
                "optimizer": {"type": "Adam", "params": {"lr": 0.125}},
            },
            modules=[{"name": "l0", "custom": {"shape": [1]}}],
            body=micro_batch(),
        ),
    ),
    ("clip_without_gradients", (0,), document(config={"gradient_clipping": 1.0}, body=[STEP])),
    ("h5", (0,), program(micro_batch(), **fp16(16))),
    ("h6", (1, 2, 3), program(micro_batch() * 4, **fp16(0, window=2))),
    (
        "h8_activations",
        (1, 2),
        with_activations(program(BY_HAND * 2, modules=TWO_LAYERS[:1], **TWO_STEPS)),
    ),
    ("h8", (2,), program(PAST_ENGINE * 2, **TWO_STEPS)),
    ("h9", (1, 2, 3), {**program(UNSCALED, **fp16(16)), "refusals": UNSCALED_IS_REFUSED}),
    ("refused_backward", (2, 3), {**program(UNSCALED, **fp16(0)), "refusals": UNSCALED_IS_REFUSED}),
    (
        "scale_is_of_the_engine",
        (1, 2, 3),
        {**program(UNSCALED_TWICE, **fp16(0)), "refusals": {**UNSCALED_IS_REFUSED, "body/3": LOSS_SCALING}},
    ),
    ("h10", (0, 1, 2, 3), program(micro_batch() * 2, modules=TILED, **TWO_STEPS)),
    ("h12", (2,), in_dataclass(program([forward("g"), by_tensor("g"), STEP]))),
    (
        "h12_undivided",
        (1, 2),
        in_dataclass(document(config=TWO_STEPS, modules=OWN_WEIGHT, body=BY_HAND * 2)),
    ),
    ("h13", (2, 3), program(micro_batch(), modules=[TWO_LAYERS[0], *IN_TWO_CHECKPOINTS])),
    (
        "h14",
        (1,),
        program(
            [*micro_batch(), *micro_batch("l0")],
            zero_optimization={"overlap_comm": True},
            **TWO_STEPS,
        ),
    ),
    ("h15", (1, 2), program([*micro_batch(), *micro_batch("l1")], **ON_CPU)),
    (
        "predivided_by_ranks_stage3",
        (3,),
        program(micro_batch(), gradient_predivide_factor=2.0, zero_optimization={"reduce_scatter": False}),
    ),
    ("h16", (3,), program([*micro_batch() * 2, *micro_batch("l1") * 4], **TWO_STEPS)),
    ("h21", (2, 3), program([*micro_batch("l1"), *micro_batch("l0")], **ON_CPU, **TWO_STEPS)),
    ("h24", (3,), program(EXPERTS_SUMMED, modules=EXPERTS)),
    ("n1", (1, 2, 3), program([*SUMMED, by_tensor("s"), STEP])),
    (
        "n2",
        (1, 2, 3),
        program([*SUMMED, backward("s"), STEP, forward("g"), by_tensor("g"), STEP]),
    ),
    ("n3", (1, 2, 3), program(failing(by_tensor))),
    ("n7", (3,), program([{"transform": {"engine": "a", "kind": "grad"}}])),
    ("n8", (1, 2, 3), program([*micro_batch(), *micro_batch("l1")], **ON_CPU, **UNMANAGED)),
    (
        "n5",
        (2,),
        program([forward("g"), backward("g"), ZERO_GRAD, *micro_batch()], **BF16),
    ),
    (
        "n9",
        (3,),
        program([forward("g"), backward("g"), ZERO_GRAD, *micro_batch()]),
    ),
]
WITH_EXPERT = [forward("g", expert=1, inputs_need_grad=True), backward("g"), STEP]
SAVE, LOAD = ({kind: {"engine": "a", "tag": "t"}} for kind in ("save", "load"))
# Programs that every stage trains right.
FROZEN_WEIGHT = [
    {
        "name": "l0",
        "linear": {"inputs": 1, "outputs": 1, "has_bias": True, "trained": "bias_only"},
    }
]
RIGHT = [
    program(micro_batch(), gradient_predivide_factor=4.0, zero_optimization={"reduce_scatter": False}),
    with_activations(program(micro_batch() * 2, **TWO_STEPS)),
    program(micro_batch() * 2),
    program(micro_batch() * 2, bf16={"enabled": True}),
    program(micro_batch(), modules=TILED),
    program(WITH_EXPERT * 2, modules=EXPERTS),
    program([*micro_batch(), SAVE, *micro_batch(), LOAD, *micro_batch()]),
    program(
        micro_batch(),
        modules=FROZEN_WEIGHT,
        bf16={"enabled": True},
        zero_optimization={"stage3_param_persistence_threshold": 0},
    ),
]
