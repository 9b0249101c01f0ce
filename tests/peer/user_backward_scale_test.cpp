// tests/unit/v1/zero/test_zero_user_backward.py: engine.scale(loss).backward().
#include <array>
#include <cmath>

#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

constexpr std::array kScaleStages = {1, 2, 3};
constexpr std::array kScales = {0, 256};  // dynamic, static

ZeroConfig fp16_config(int stage, int static_scale = 0) {
  ZeroConfig config = base_config(stage, DType::float16);
  config.fp16.loss_scale = static_scale;
  return config;
}

// What follows a refused backward must train as if it had never been.
void is_refused_without_scale(Rank& rank, const ZeroConfig& config) {
  Engined engine = rank.engine(make_stack({}), config);
  const Place place{rank.rank(), 0, 0};
  const Tensor loss = engine->forward(batch_of(place, 4, DType::float16)).at(0);
  require_throws([&] { rank.ag.backward(loss); }, "backward_without_loss_scaling");
  engine->zero_grad();
  run_engine(rank, engine, {}, place);
  Ddp ddp(make_stack({}), {.ranks = rank.ranks(), .dtype = DType::float16, .loss_scale = 256.0});
  run_reference(ddp, {}, config, place);
  require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float16),
                "after the refusal");
}

void every_stage_and_scale(const std::function<void(int stage, int scale)>& body) {
  each("stage", kScaleStages,
       [&](int stage) { each("scale", kScales, [&](int scale) { body(stage, scale); }); });
}

}  // namespace

PEER_ROW(TestZeroUserBackwardScaleErrorDetection,
         test_error_when_backward_without_scale_sequential) {
  each("scale", kScales, [&](int scale) {
    on_ranks(1, twin, [&](Rank& rank) { is_refused_without_scale(rank, fp16_config(1, scale)); });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_error_when_backward_without_scale_fp16) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin,
             [&](Rank& rank) { is_refused_without_scale(rank, fp16_config(stage, scale)); });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_scale_backward_matches_engine_backward) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin, [&](Rank& rank) {
      FullTensors gradients[2];
      for (const bool is_managed : {false, true}) {
        Engined engine = rank.engine(make_stack({}), fp16_config(stage, scale));
        run_engine(rank, engine, {.way = is_managed ? BackwardWay::managed : BackwardWay::manual},
                   {rank.rank(), 0, 0});
        gradients[is_managed ? 1 : 0] = engine->full_gradients();
      }
      require(has_values(gradients[0]), "no gradients");
      require_equal(gradients[0], gradients[1], {}, "scale() against engine.backward()");
      Ddp ddp(make_stack({}), {.dtype = DType::float16, .loss_scale = 256.0});
      run_reference(ddp, {}, fp16_config(stage), {0, 0, 0});
      require_equal(gradients[0], ddp.gradients(), tolerance_of(DType::float16), "reference");
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_scale_backward_matches_ddp) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin, [&](Rank& rank) {
      require_matches_ddp(rank, make_stack({}), fp16_config(stage, scale), {.steps = 2});
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_scale_with_gradient_accumulation) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = fp16_config(stage, scale);
      config.gradient_accumulation_steps = 4;
      Engined engine = rank.engine(make_stack({}), config);
      const Tensor loss = engine->forward(batch_of({rank.rank(), 0, 0}, 4, DType::float16)).at(0);
      require_near(engine->scale(loss).item(), 256.0 * loss.item(), 1e-6 * 256.0,
                   "scale() multiplies with the loss scale alone");
      require_matches_ddp(rank, make_stack({}), config, {.steps = 2, .micro_batches = 4});
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_needs_scaler_with_fp16) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({}), fp16_config(stage, scale));
      require(engine->needs_scaler(), "fp16 needs a scaler");
      const Tensor loss = engine->forward(batch_of({rank.rank(), 0, 0}, 4, DType::float16)).at(0);
      require(engine->scale(loss).grad_fn() != nullptr, "the scaled loss has a graph");
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_needs_scaler_with_bf16) {
  each("stage", kScaleStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      const ZeroConfig config = base_config(stage, DType::bfloat16);
      Engined engine = rank.engine(make_stack({}), config);
      require(!engine->needs_scaler(), "bf16 needs no scaler");
      require_matches_ddp(rank, make_stack({}), config, {.compares_parameters = false});
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_scale_validates_scalar_loss) {
  each("stage", kScaleStages, [&](int stage) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({.has_loss = false}), fp16_config(stage));
      Tensor output = engine->forward(batch_of({rank.rank(), 0, 0}, 4, DType::float16)).at(0);
      if (twin.has_fault("a scalar loss")) output = sum(rank.ag, output);
      require_throws([&] { engine->scale(output); }, "scale_of_invalid_loss");
      require_throws([&] { engine->scale(Tensor::full({}, 1.0, DType::float16)); },
                     "scale_of_invalid_loss");
    });
  });
}

PEER_ROW(TestZeroUserBackwardWithScale, test_scale_with_torch_autocast) {
  every_stage_and_scale([&](int stage, int scale) {
    on_ranks(2, twin, [&](Rank& rank) {
      Engined engine = rank.engine(make_stack({}), fp16_config(stage, scale));
      run_engine(rank, engine, {}, {rank.rank(), 0, 0});
      const FullTensors gradients = engine->full_gradients();
      require(gradients.size() == 4, "a gradient for each parameter");
      for (const FullTensor& gradient : gradients) require(has_values({gradient}), gradient.name);
      Ddp ddp(make_stack({}), {.dtype = DType::float16, .loss_scale = 256.0});
      run_reference(ddp, {}, fp16_config(stage), {0, 0, 0});
      require_equal(gradients, ddp.gradients(), tolerance_of(DType::float16), "reference");
    });
  });
}

}  // namespace zeroproof::peer
