// World, configuration, models and engines.
#include <algorithm>
#include <array>
#include <utility>

#include "props/program/config_domains.h"
#include "props/program/draw.h"
#include "props/program/forward_flow.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

// --- the world ----------------------------------------------------------------------------------

// Ranks that share a sequence or train the same.
void draw_groups(Source& source, World& world) {
  if (source.one_in(4)) {
    world.tensor = source.one_in(4) ? source.between(3, 4) : 2;
    world.ranks = source.between(1, World::kMost / world.tensor);
  } else if (source.one_in(3)) {
    world.sequence = source.one_in(4) ? source.between(3, 4) : 2;
    world.ranks = world.sequence * (world.sequence == 2 && source.one_in(2) ? 2 : 1);
  } else if (source.one_in(4)) {
    world.ranks = source.between(5, World::kMost);
  }
}

// What a subject has no world for becomes as many ranks as it has.
void fit_world(const Policy& policy, World& world) {
  if (policy.can_do(world)) return;
  world = {.ranks = world.ranks, .skips_frames = world.skips_frames};
  if (!policy.can_do(world)) world.ranks = policy.subject->capabilities.some_ranks();
}

// How often each stage is drawn. A subject without any simplest configuration may have
// another one.
std::array<std::uint32_t, 4> stage_weights(const Policy& policy) {
  constexpr std::array<std::uint32_t, 4> kUsual = {4, 4, 4, 8};
  std::array<std::uint32_t, 4> weights = kUsual;
  for (std::size_t stage = 0; stage < weights.size(); ++stage)
    if (!policy.can_do(simplest_config(static_cast<int>(stage)))) weights.at(stage) = 0;
  return std::ranges::any_of(weights, [](std::uint32_t it) { return it > 0; }) ? weights : kUsual;
}

// What has to hold for all that follows, so that it comes first.
void draw_world(Source& source, const Policy& policy, Program& program) {
  const Source::Scope scope(source, "world");
  constexpr std::array<std::uint32_t, 4> kRanks = {4, 7, 2, 2};
  World& world = program.world;
  int stage = static_cast<int>(source.weighted(stage_weights(policy)));
  world.ranks = 1 + static_cast<int>(source.weighted(kRanks));
  const bool has_frames = policy.has(Tag::frames) && !policy.has(Tag::engines);
  if (has_frames) stage = 3;
  program.config = simplest_config(stage);
  world.skips_frames = has_frames;
  world.ranks_differ = source.one_in(6);
  if (policy.has(Tag::worlds)) draw_groups(source, world);
  fit_world(policy, world);
}

void draw_autograd(Source& source, const Policy& policy, Program& program) {
  const std::uint32_t n = policy.has(Tag::misuse) ? 6 : 20;
  if (!source.one_in(n) || program.config.stage == 0 || policy.has(Tag::engines)) return;
  World world = program.world;
  world.autograd = source.one_in(2) ? World::Autograd::no_counts : World::Autograd::no_callback;
  if (policy.can_do(world)) program.world = world;
}

// The experts as the configuration names them, so that stage 3 fetches them as one.
void name_leaf_module(const Module& node, LeafModuleConfig& leaf) {
  const auto* const experts = std::get_if<Experts>(&node.kind);
  if (!experts) return;
  if (experts->leaf_by == LeafBy::name) leaf.names = {node.name};
  if (experts->leaf_by == LeafBy::suffix) leaf.name_suffixes = {node.name.substr(2)};
  if (experts->leaf_by == LeafBy::class_name) leaf.classes = {"zeroproof.Experts"};
}

// Taken back where the subject has no such configuration.
template <class Change>
void try_config(const Policy& policy, ZeroConfig& config, const Change& change) {
  ZeroConfig changed = config;
  change(changed);
  if (policy.can_do(changed)) config = changed;
}

// A loss scale that moves, as far as it may fall. A subject that has no such window or least scale
// has the others: together all of them would seldom be what it can do.
void draw_loss_scale(Source& source, const Policy& policy, ZeroConfig& config) {
  if (!config.fp16.enabled || source.one_in(policy.has(Tag::loss_scaling) ? 3 : 2)) return;
  constexpr std::array<double, 4> kLeast = {1.0, 8.0, 6.0, 4.0};
  const double least = kLeast.at(source.below(4));
  const std::int64_t window = source.one_in(3) ? 1000 : source.between(1, 2);
  const int hysteresis = source.between(1, 3);
  const bool is_consecutive = source.one_in(3);
  try_config(policy, config, [&](ZeroConfig& it) { it.fp16.loss_scale = 0.0; });
  if (config.fp16.loss_scale != 0.0) return;
  try_config(policy, config, [&](ZeroConfig& it) { it.fp16.min_loss_scale = least; });
  try_config(policy, config, [&](ZeroConfig& it) { it.fp16.loss_scale_window = window; });
  try_config(policy, config, [&](ZeroConfig& it) { it.fp16.hysteresis = hysteresis; });
  try_config(policy, config,
             [&](ZeroConfig& it) { it.fp16.consecutive_hysteresis = is_consecutive; });
}

// Momentum has a state without a second moment, and updates without a gradient.
void draw_optimizer(Source& source, ZeroConfig& config) {
  if (!source.one_in(5) || config.is_offloaded()) return;
  config.optimizer.type = OptimizerType::sgd;
  config.optimizer.sgd.momentum = 0.5;
}

void draw_configuration(Source& source, const Policy& policy, Program& program) {
  const Source::Scope scope(source, "configuration");
  ZeroConfig& config = program.config;
  constexpr std::array<std::uint32_t, 5> kEach = {6, 3, 3, 2, 1};
  const std::array<std::uint32_t, 5> scaled = {2, 5, 3, 1, 3};
  const auto precision =
      source.weighted(policy.has(Tag::loss_scaling) && !policy.is_plain ? scaled : kEach);
  const bool is_transformed = policy.is_plain && policy.has(Tag::transforms);
  try_config(policy, config, [&](ZeroConfig& it) {
    set_precision(it, is_transformed ? Precision::float32 : static_cast<Precision>(precision));
  });
  constexpr std::array<std::uint32_t, 4> kEachSteps = {5, 3, 1, 1};
  constexpr std::array<std::int64_t, 4> kSteps = {1, 2, 4, 3};
  const std::int64_t steps = kSteps.at(source.weighted(kEachSteps));
  try_config(policy, config, [&](ZeroConfig& it) { it.gradient_accumulation_steps = steps; });
  draw_loss_scale(source, policy, config);
  if (source.one_in(3))
    try_config(policy, config, [](ZeroConfig& it) { it.overlap_comm = it.stage != 3; });
  if (policy.has(Tag::contexts) && source.one_in(2))
    try_config(policy, config, [](ZeroConfig& it) { it.enable_sanity_checks = true; });
  try_config(policy, config, [&](ZeroConfig& it) { draw_optimizer(source, it); });
  draw_topic(source, policy, config);
  draw_config(source, policy, source.between(0, policy.is_plain ? 8 : 14), config);
}

// --- gradients at the limits of their dtypes ----------------------------------------------------

// What the limit of data.magnitude is about, and what has no room beside it.
void set_limit(Source& source, Program& program) {
  World& world = program.world;
  ZeroConfig& config = program.config;
  world.tensor = world.sequence = 1;
  config.gradient_accumulation_steps = 1;
  config.stage = config.stage == 3 || config.stage == 0 ? source.between(1, 2) : config.stage;
  switch (program.data.magnitude) {
    case 0:
    case 1:
      world.ranks = source.one_in(3) ? 4 : 2;
      config.stage = source.between(0, 3);
      return set_precision(config, Precision::fp16);
    case 2:
      world.ranks = 4;
      world.sequence = 2;
      config.use_multi_rank_bucket_allreduce = true;
      return set_precision(config, Precision::bf16);
    case 3:
      world.ranks = source.between(2, 4);
      config.reduce_scatter = true;
      config.use_multi_rank_bucket_allreduce = false;
      config.communication_data_type = world.ranks == 3 ? DType::bfloat16 : DType::float16;
      return set_precision(config, Precision::float32);
    default:
      config.gradient_accumulation_steps = source.between(3, 4);
      return set_precision(config, Precision::bf16);
  }
}

void draw_limit(Source& source, const Policy& policy, Program& program) {
  const Source::Scope scope(source, "limit");
  if (!source.one_in(policy.has(Tag::configuration) ? 8 : 24)) return;
  Program changed = program;
  changed.data.mode = Data::Mode::magnitude;
  changed.data.magnitude = source.between(0, 4);
  set_limit(source, changed);
  const bool is_done =
      policy.can_do(changed.world) && policy.can_do(changed.config) && policy.can_do(changed.data);
  if (is_done && head_problem(changed).empty()) program = std::move(changed);
}

EngineSpec simplest_engine(const std::string& name, const std::string& model) {
  EngineSpec engine;
  engine.name = name;
  engine.model = model;
  return engine;
}

bool has_frozen_weight(const Model& model) {
  return std::ranges::any_of(weight_owners(model), [](const Module* const owner) {
    const Trained trained = trained_of(*owner);
    return trained == Trained::frozen || trained == Trained::bias_only;
  });
}

void draw_engine(Source& source, const Policy& policy, Program& program, EngineSpec& engine) {
  const Source::Scope scope(source, "engine");
  const auto try_out = [&](auto change) {
    const EngineSpec before = engine;
    change(engine);
    if (!policy.can_do(engine) || !head_problem(program).empty()) engine = before;
  };
  const bool has_groups =
      policy.has(Tag::parameters) || has_frozen_weight(program.model_of(engine.name));
  const std::uint32_t n = has_groups ? 2 : 4;
  if (source.one_in(n))
    try_out([&](EngineSpec& it) { it.parameter_groups = source.between(2, 3); });
  if (source.one_in(n)) try_out([](EngineSpec& it) { it.lists_frozen = true; });
  if (source.one_in(policy.has(Tag::loss_scaling) ? 3 : 8))
    try_out([&](EngineSpec& it) { it.custom_loss_scale = source.one_in(2) ? 4.0 : 32.0; });
  if (source.one_in(3)) try_out([&](EngineSpec& it) { it.grows_in = source.between(1, 3); });
  if (source.one_in(policy.has(Tag::configuration) ? 2 : 8))
    try_out([](EngineSpec& it) { it.reads_document = true; });
}

// A configuration that no model has, as that of leaf modules beside tiles, is taken back.
void mend_configuration(Program& program) {
  if (head_problem(program).empty()) return;
  program.config.stage3_module_granularity_threshold = 0;
  if (head_problem(program).empty()) return;
  program.config = simplest_config(0);
  program.world = {};
}

}  // namespace

Program draw_head(Source& source, const Policy& policy) {
  Program program;
  draw_world(source, policy, program);
  draw_configuration(source, policy, program);
  draw_autograd(source, policy, program);
  program.engines.push_back(simplest_engine("a", "m"));
  if (policy.has(Tag::engines)) program.engines.push_back(simplest_engine("b", "n"));
  for (const EngineSpec& engine : program.engines) {
    Model simplest{.name = engine.model, .body = {}, .heads = {}};
    simplest.body.push_back({.name = "l0", .kind = Linear{.input_needs_grad = true}});
    program.models.push_back(std::move(simplest));
  }
  mend_configuration(program);
  draw_limit(source, policy, program);
  for (Model& model : program.models) {
    Model drawn = draw_model(source, policy, program, model.name);
    if (model_problem(program, drawn).empty()) model = std::move(drawn);
  }
  for (const Model& model : program.models)
    for (const Module* const node : nodes_of(model))
      name_leaf_module(*node, program.config.leaf_module);
  for (EngineSpec& engine : program.engines) draw_engine(source, policy, program, engine);
  return program;
}

}  // namespace zeroproof::program
