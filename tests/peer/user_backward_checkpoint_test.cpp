// tests/unit/v1/zero/test_zero_user_backward.py: backward by hand through activation checkpoints.
#include <array>

#include "model/functions/losses.h"
#include "tests/peer/support/training.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kCheckpointStages = {1, 2, 3};
constexpr std::array kKinds = {CheckpointKind::reentrant, CheckpointKind::non_reentrant};
constexpr std::int64_t kWidth = 8;

// The first layer in a checkpoint.
NetMaker make_checkpointed(CheckpointKind kind) {
  return [kind]() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"l0", linear_layer(kWidth, kWidth, 1)},
                                {"l1", linear_layer(kWidth, kWidth, 2)},
                                {"head", linear_layer(kWidth, kWidth, 3)}}},
        [kind](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x =
              checkpoint(ag, kind,
                         [&ag, &net](const TensorList& inner) -> TensorList {
                           return {net.call(ag, "l1", tanh(ag, net.call(ag, "l0", inner.at(0))))};
                         },
                         {in.at(0)})
                  .at(0);
          return {net.call(ag, "head", tanh(ag, x))};
        });
  };
}

TensorList input_with_gradient(const Place& place, DType dtype) {
  TensorList inputs = batch_of(place, kWidth, dtype);
  inputs[0].set_requires_grad(true);
  return {inputs[0]};
}

Tensor classes_loss(Autograd& ag, const TensorList& outputs, const Place& place) {
  return cross_entropy(ag, outputs.at(0), {{place.rank % 8, (place.step + 3) % 8}});
}

void checkpointed_matches_ddp(const Twin& twin, const Loop& given) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    each("stage", kCheckpointStages, [&](int stage) {
      each("kind", kKinds, [&](CheckpointKind kind) {
        on_ranks(2, twin, [&](Rank& rank) {
          Loop loop = given;
          loop.inputs = [dtype](const Place& place) { return input_with_gradient(place, dtype); };
          loop.compares_parameters = dtype == DType::float32;
          // Adam makes a whole step of the last bit of a small gradient.
          loop.is_first_only = dtype != DType::float32;
          require_matches_ddp(rank, make_checkpointed(kind), base_config(stage, dtype), loop);
        });
      });
    });
}

}  // namespace

PEER_ROW(TestZeroUserBackwardWithCheckpointing, test_checkpointed_non_scalar_backward) {
  checkpointed_matches_ddp(twin, {.is_non_scalar = true});
}

PEER_ROW(TestZeroUserBackwardWithCheckpointing, test_checkpointed_scalar_backward) {
  checkpointed_matches_ddp(twin, {.loss = classes_loss});
}

PEER_ROW(TestZeroUserBackwardWithCheckpointing, test_checkpointed_multiple_backward) {
  checkpointed_matches_ddp(twin, {.steps = 3, .loss = classes_loss});
}

// --- frozen parameters in checkpoints ----------------------------------------------------------

namespace {

constexpr std::array kThresholds = {0, 100};

struct FrozenCase {
  int stage = 3;
  int threshold = 0;
  DType dtype = DType::float32;
  CheckpointKind kind = CheckpointKind::reentrant;
};

using FrozenMaker = std::function<NetMaker(CheckpointKind)>;

void check_frozen(Rank& rank, const FrozenMaker& make, const FrozenCase& is,
                  const std::vector<std::string>& leaves) {
  ZeroConfig config = base_config(is.stage, is.dtype);
  config.stage3_param_persistence_threshold = is.threshold;
  if (is.stage == 3) config.leaf_module.names = leaves;
  Loop loop{.steps = 3};
  loop.inputs = [&](const Place& place) { return input_with_gradient(place, is.dtype); };
  loop.loss = classes_loss;
  loop.is_first_only = true;
  loop.compares_parameters = is.dtype == DType::float32;
  loop.after_backward = [&](Engined& engine, const Place& place) {
    if (is.stage != 3) return;
    require_released(engine, "iteration " + std::to_string(place.step));
    if (place.step > 0) require_persistent_available(engine, "after the backward");
  };
  require_matches_ddp(rank, make(is.kind), config, loop);
}

void frozen_matches_ddp(const Twin& twin, const FrozenMaker& make,
                        const std::vector<std::string>& leaves = {}) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    each("stage", kCheckpointStages, [&](int stage) {
      each("kind", kKinds, [&](CheckpointKind kind) {
        each("threshold", kThresholds, [&](int threshold) {
          if (stage != 3 && threshold > 0) return;
          on_ranks(2, twin, [&](Rank& rank) {
            check_frozen(rank, make,
                         {.stage = stage, .threshold = threshold, .dtype = dtype, .kind = kind},
                         leaves);
          });
        });
      });
    });
}

// linear, frozen norm, linear.
ModulePtr make_block(std::uint64_t seed) {
  const ModulePtr norm = norm_layer(kWidth, seed + 1);
  freeze(*norm);
  return std::make_shared<Net>(
      Net::Parts{.children = {{"up", linear_layer(kWidth, kWidth, seed)},
                              {"norm", norm},
                              {"down", linear_layer(kWidth, kWidth, seed + 2)}}},
      [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
        const Tensor x = net.call(ag, "norm", net.call(ag, "up", in.at(0)));
        return {net.call(ag, "down", tanh(ag, x))};
      });
}

NetMaker make_blocks(CheckpointKind kind, int blocks) {
  return [kind, blocks]() -> ModulePtr {
    Net::Parts parts{.children = {{"head", linear_layer(kWidth, kWidth, 99)}}};
    for (int i = 0; i < blocks; ++i)
      parts.children.emplace_back("b" + std::to_string(i),
                                  make_block(static_cast<std::uint64_t>(10 * i)));
    return std::make_shared<Net>(
        parts, [kind, blocks](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor x = in.at(0);
          for (int i = 0; i < blocks; ++i)
            x = checkpoint(ag, kind,
                           [&ag, &net, i](const TensorList& inner) -> TensorList {
                             return {net.call(ag, "b" + std::to_string(i), inner.at(0))};
                           },
                           {x})
                    .at(0);
          return {net.call(ag, "head", x)};
        });
  };
}

// A frozen base with a low-rank adapter beside it, in a checkpoint.
NetMaker make_lora(CheckpointKind kind) {
  return [kind]() -> ModulePtr {
    const auto base = linear_layer(kWidth, kWidth, 1);
    freeze(*base);
    return std::make_shared<Net>(
        Net::Parts{.children = {{"base", base},
                                {"down", linear_layer(kWidth, 2, 2, false)},
                                {"up", linear_layer(2, kWidth, 3, false)},
                                {"head", linear_layer(kWidth, kWidth, 4)}}},
        [kind](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x =
              checkpoint(ag, kind,
                         [&ag, &net](const TensorList& inner) -> TensorList {
                           const Tensor low = net.call(ag, "up", net.call(ag, "down", inner.at(0)));
                           return {tanh(ag, add(ag, net.call(ag, "base", inner.at(0)), low))};
                         },
                         {in.at(0)})
                  .at(0);
          return {net.call(ag, "head", x)};
        });
  };
}

// A leaf module that gives two tensors, in a checkpoint.
NetMaker make_two_outputs(CheckpointKind kind) {
  return [kind]() -> ModulePtr {
    const ModulePtr norm = norm_layer(kWidth, 7);
    freeze(*norm);
    const auto leaf =
        std::make_shared<Net>(Net::Parts{.children = {{"norm", norm},
                                                      {"a", linear_layer(kWidth, kWidth, 1)},
                                                      {"b", linear_layer(kWidth, kWidth, 2)}}},
                              [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
                                const Tensor x = net.call(ag, "norm", in.at(0));
                                return {net.call(ag, "a", x), tanh(ag, net.call(ag, "b", x))};
                              });
    return std::make_shared<Net>(
        Net::Parts{.children = {{"leaf", leaf}, {"head", linear_layer(kWidth, kWidth, 3)}}},
        [kind](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const TensorList two = checkpoint(
              ag, kind,
              [&ag, &net](const TensorList& inner) { return net.call_list(ag, "leaf", inner); },
              {in.at(0)});
          return {net.call(ag, "head", add(ag, two.at(0), two.at(1)))};
        });
  };
}

}  // namespace

PEER_ROW(TestZeroUserBackwardFrozenParamCheckpointing, test_checkpointed_frozen_param) {
  frozen_matches_ddp(twin, [](CheckpointKind kind) { return make_blocks(kind, 1); });
}

PEER_ROW(TestZeroFrozenParamCheckpointingVariants, test_multi_block) {
  frozen_matches_ddp(twin, [](CheckpointKind kind) { return make_blocks(kind, 3); });
}

PEER_ROW(TestZeroFrozenParamCheckpointingVariants, test_lora_style) {
  frozen_matches_ddp(twin, make_lora);
}

PEER_ROW(TestZeroFrozenParamMultiTensorLeaf, test_multi_tensor_leaf) {
  frozen_matches_ddp(twin, make_two_outputs, {"leaf"});
}

PEER_ROW(TestZeroFrozenParamNoGradInputAccumulation, test_no_grad_input_accumulation) {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    each("kind", kKinds, [&](CheckpointKind kind) {
      each("threshold", kThresholds, [&](int threshold) {
        on_ranks(2, twin, [&](Rank& rank) {
          ZeroConfig config = base_config(3, dtype);
          config.gradient_accumulation_steps = 2;
          config.stage3_param_persistence_threshold = threshold;
          Loop loop{.steps = 3, .micro_batches = 2};
          loop.inputs = [dtype](const Place& place) {
            return TensorList{batch_of(place, kWidth, dtype).at(0)};
          };
          loop.loss = classes_loss;
          loop.compares_parameters = dtype == DType::float32;
          loop.after_backward = [](Engined& engine, const Place& place) {
            require_released(engine, "after a micro-batch");
            if (place.step > 0) require_persistent_available(engine, "after a micro-batch");
          };
          // A reentrant checkpoint whose input needs no gradient does not train its modules (K1).
          require_matches_ddp(rank, make_blocks(kind, 1), config, loop);
        });
      });
    });
}

}  // namespace zeroproof::peer
