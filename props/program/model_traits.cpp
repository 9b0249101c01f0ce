#include "props/program/model_traits.h"

#include <algorithm>

namespace zeroproof::program {
namespace {

void add(const Linear& linear, ModelTraits& traits) {
  traits.has_watches = traits.has_watches || linear.watches_input;
}
void add(const Custom& custom, ModelTraits& traits) {
  traits.has_customs = true;
  traits.returns_weights = traits.returns_weights || custom.returns_weight;
  traits.has_watches = traits.has_watches || custom.watches_input;
}
void add(const OwnWeight&, ModelTraits& traits) {
  traits.has_own_weights = true;
}
void add(const Checkpoint&, ModelTraits& traits) {
  traits.has_checkpoints = true;
}
void add(const Tiled&, ModelTraits& traits) {
  traits.has_tiles = true;
}
void add(const Experts& experts, ModelTraits& traits) {
  traits.has_experts = true;
  traits.experts = experts.experts;
}
void add(const ExternalUse& use, ModelTraits& traits) {
  traits.has_external_uses = true;
  traits.has_watches = traits.has_watches || use.watches_use;
}
void add(const Tied&, ModelTraits& traits) {
  traits.has_tied_weights = true;
}
void add(const Sequential&, ModelTraits&) {}
void add(const Shared&, ModelTraits&) {}
void add(const Unused&, ModelTraits&) {}

const ExternalUse& use_of(const Module& module) {
  return std::get<ExternalUse>(module.kind);
}

}  // namespace

ModelTraits traits_of(const Model& model) {
  ModelTraits traits;
  for (const Module* const node : nodes_of(model))
    std::visit([&](const auto& kind) { add(kind, traits); }, node->kind);
  traits.is_plain = !traits.has_checkpoints && !traits.has_tiles && !traits.has_experts &&
                    !traits.has_external_uses && !traits.has_own_weights &&
                    !traits.has_tied_weights && !traits.returns_weights && !traits.has_watches;
  return traits;
}

bool can_hook(const Module& module) {
  return std::holds_alternative<Linear>(module.kind) ||
         std::holds_alternative<Custom>(module.kind) ||
         std::holds_alternative<Shared>(module.kind) || std::holds_alternative<Tied>(module.kind);
}

int weight_dimensions(const Module& owner) {
  const auto* const custom = std::get_if<Custom>(&owner.kind);
  return custom ? static_cast<int>(custom->shape.size()) : 2;
}

bool may_be_read_by_some(const State& state, const Forward& forward, const Module& use) {
  const Model& model = state.model(forward.engine);
  const ExternalUse& external = use_of(use);
  const ForwardFlow flow = flow_of(model, {.inputs_need_grad = true});
  return state.stage == 3 && model.losses() == 1 && forward.inputs_need_grad &&
         external.is_registered && external.when == ReadWhen::used_here && !external.watches_use &&
         flow.unwrapped.contains(external.module) && flow.ran.contains(external.module) &&
         state.config().reduce_bucket_size >= 1000;
}

bool may_starve_leaf(const State& state, const Forward& forward) {
  const ZeroConfig& config = state.config();
  const EngineState& engine = state.engines.at(forward.engine);
  return state.stage == 3 && state.frames.empty() && forward.hooks.empty() &&
         config.stage3_param_persistence_threshold == 0 &&
         config.stage3_prefetch_bucket_size == 0 && config.stage3_max_reuse_distance == 0 &&
         !config.fp16.enabled && !engine.scaler.is_needed() && !forward.spike;
}

}  // namespace zeroproof::program
