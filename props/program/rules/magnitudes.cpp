// Where gradients may be as large as the dtypes on their way allow, or as small.
#include <algorithm>

#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

enum Limit { sum_overflows, scaled_alone, shared_sequences, narrow_wire, long_window };

// Each weight gets one contribution of a forward, which no sum of rows makes larger.
bool is_used_once(const Model& model) {
  if (model.losses() > 1 || model.added_to_loss != 0.0) return false;
  return std::ranges::all_of(nodes_of(model), [](const Module* const node) {
    if (const auto* const linear = std::get_if<Linear>(&node->kind)) return !linear->has_bias;
    if (const auto* const custom = std::get_if<Custom>(&node->kind)) return !custom->returns_weight;
    return std::holds_alternative<Sequential>(node->kind) ||
           std::holds_alternative<Checkpoint>(node->kind);
  });
}

bool is_plain(const Program& program) {
  const ZeroConfig& config = program.config;
  const bool is_mean = config.gradient_allreduce_op == GradientAllreduceOp::mean &&
                       !config.prescale_gradients && config.gradient_predivide_factor == 1.0;
  return is_mean && program.world.tensor == 1 &&
         std::ranges::none_of(program.engines, [](const EngineSpec& engine) {
           return engine.custom_loss_scale.has_value();
         });
}

// Reduced by stages that sum whole buckets.
bool sums_buckets(const ZeroConfig& config) {
  return (config.stage == 1 || config.stage == 2) &&
         (!config.reduce_scatter || config.use_multi_rank_bucket_allreduce);
}

bool has_own_dtypes(const ZeroConfig& config) {
  return config.communication_dtype() == config.model_dtype() &&
         config.accumulation_dtype() == config.model_dtype() &&
         !config.bf16.master_weights_and_grads;
}

bool is_narrow_wire(const World& world, const ZeroConfig& config) {
  const bool sends_slices = (config.stage == 1 || config.stage == 2) && !sums_buckets(config);
  const bool is_wide = config.model_dtype() == DType::float32 && !config.torch_autocast.enabled;
  const DType wire = config.communication_dtype();
  // bfloat16 rounds thirds alone.
  const bool has_ranks =
      wire == DType::bfloat16 ? world.ranks == 3 : wire == DType::float16 && world.ranks > 1;
  return sends_slices && is_wide && has_ranks && world.sequence == 1;
}

bool has_half_scale(const World& world, const ZeroConfig& config) {
  const bool has_ranks = world.ranks == 2 || world.ranks == 4;
  return has_ranks && world.sequence == 1 && config.fp16.enabled &&
         config.fp16.loss_scale == 16.0 && has_own_dtypes(config);
}

bool has_room(const Program& program) {
  const World& world = program.world;
  const ZeroConfig& config = program.config;
  switch (program.data.magnitude) {
    case sum_overflows:
    case scaled_alone:
      return has_half_scale(world, config);
    case shared_sequences:
      return world.sequence == 2 && world.ranks == 4 && config.bf16.enabled &&
             sums_buckets(config) && has_own_dtypes(config);
    case narrow_wire:
      return is_narrow_wire(world, config);
    default:
      return world.sequence == 1 && !config.fp16.enabled && !config.torch_autocast.enabled;
  }
}

}  // namespace

std::string magnitude_problem(const Program& program) {
  const Data& data = program.data;
  if (data.mode != Data::Mode::magnitude) return {};
  return first_broken(
      {{data.magnitude < 0 || data.magnitude > long_window, "a limit that is none"},
       {!is_plain(program), "gradients at their limits that are scaled or summed otherwise"},
       {!has_room(program), "gradients at the limits of other dtypes"},
       {data.magnitude != long_window && program.config.gradient_accumulation_steps != 1,
        "gradients at their limits in a window of several micro-batches"}});
}

std::string magnitude_problem(const Program& program, const Model& model) {
  const bool is_right = program.data.mode != Data::Mode::magnitude || is_used_once(model);
  return is_right ? "" : "gradients at their limits of which a weight gets several";
}

bool has_one_backward(const Data& data) {
  return data.mode == Data::Mode::magnitude && data.magnitude != long_window;
}

// A backward inside another brings its part of a sum in another order, which rounds otherwise.
bool is_past_limit(const State& state, const Value& value) {
  if (state.program->data.mode != Data::Mode::magnitude) return false;
  if (state.backward_around() != nullptr) return true;
  if (!has_one_backward(state.program->data)) return false;
  const bool has_some = std::ranges::any_of(value.terms, [&](const Term& term) {
    return state.engines.at(state.graphs.at(term.graph).engine).window.has_gradients;
  });
  return has_some || value.terms.size() > 1;
}

}  // namespace zeroproof::program
