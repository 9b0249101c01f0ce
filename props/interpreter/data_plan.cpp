#include "props/interpreter/data_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/baseline/exact_data.h"
#include "model/check.h"
#include "model/fnv1a.h"
#include "model/splitmix64.h"
#include "props/interpreter/program_count.h"

namespace zeroproof::program {
namespace {

constexpr int kRows = 2;       // of the activations
constexpr int kBitsMost = 20;  // of a sum, so that no exponent is far away
constexpr int kShiftMost = 5;  // between elements of one weight

std::uint64_t mix(std::uint64_t x) {
  return next_splitmix64(x);
}

int bits_for(std::int64_t count) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count)));
}

// What a sum of `count` numbers is longer than each of them.
int carry_bits(std::int64_t count) {
  return bits_for(count - 1);
}

DType narrower(DType a, DType b) {
  return baseline::significand_bits(b) < baseline::significand_bits(a) ? b : a;
}

DType narrowest_of(const Program& program) {
  const ZeroConfig& config = program.config;
  DType narrowest = narrower(config.model_dtype(), config.communication_dtype());
  if (config.torch_autocast.enabled) narrowest = narrower(narrowest, config.torch_autocast.dtype);
  visit_statements(program.body, [&](const Statement& statement) {
    const auto* const block = std::get_if<Block>(&statement.kind);
    const auto dtype = block ? autocast_dtype(*block, config) : std::nullopt;
    if (dtype) narrowest = narrower(narrowest, *dtype);
  });
  return narrowest;
}

// So that what float16 holds is neither too large for the loss scale nor too small without one.
int exponent_of(const ZeroConfig& config, DType narrowest) {
  if (config.torch_autocast.enabled && config.torch_autocast.dtype == DType::float16) return -14;
  return narrowest == DType::float16 ? -7 : 0;
}

std::int64_t odd_part(std::int64_t number) {
  while (number > 1 && number % 2 == 0) number /= 2;
  return number;
}

}  // namespace

std::int64_t odd_divisor(const Program& program) {
  std::int64_t ranks = odd_part(program.world.ranks);
  for (const Statement& statement : program.body)
    if (const auto* const resume = std::get_if<Resume>(&statement.kind))
      ranks = std::lcm(ranks, odd_part(resume->ranks));
  return ranks * odd_part(std::max<std::int64_t>(program.config.gradient_accumulation_steps, 1));
}

Shape weight_sizes(const Module& node) {
  if (const auto* const linear = std::get_if<Linear>(&node.kind))
    return {linear->outputs, linear->inputs};
  const auto* const custom = std::get_if<Custom>(&node.kind);
  ZP_CHECK(custom, "only a Linear or Custom module has a weight that others name");
  return custom->shape;
}

UseTable::UseTable(const Model& model) {
  for (const Module* const node : nodes_of(model)) add_node(model, *node);
}

void UseTable::add(const std::string& weight, Shape sizes, int summed_rows) {
  uses_.push_back({weight, counts_[weight]++, std::move(sizes), summed_rows});
}

// What one call of a Linear or Custom module multiplies its weights with.
void UseTable::add_leaf(const Module& leaf) {
  if (const auto* const linear = std::get_if<Linear>(&leaf.kind)) {
    const Shape of_dimensions[] = {
        {linear->outputs}, {linear->inputs, linear->outputs}, {1, linear->inputs, linear->outputs}};
    const int rows = linear->dimensions == 1 ? 1 : linear->inputs;
    return add(leaf.name, of_dimensions[std::clamp(linear->dimensions, 1, 3) - 1],
               linear->has_bias ? rows : 1);
  }
  const auto* const custom = std::get_if<Custom>(&leaf.kind);
  ZP_CHECK(custom, "a call is of a Linear or Custom module");
  for (int i = 0; i < custom->weights; ++i)
    add(i == 0 ? leaf.name : leaf.name + "/" + std::to_string(i), custom->shape);
  if (custom->returns_weight) add(leaf.name, custom->shape);
}

void UseTable::add_node(const Model& model, const Module& node) {
  const std::size_t first = uses_.size();
  const auto named = [&](const std::string& name) -> const Module& {
    const Module* const found = find_module(model, name);
    ZP_CHECK(found, "a reference names a module of the model");
    return *found;
  };
  if (std::holds_alternative<Linear>(node.kind) || std::holds_alternative<Custom>(node.kind))
    add_leaf(node);
  if (const auto* const own = std::get_if<OwnWeight>(&node.kind)) add(node.name, {own->elements});
  if (const auto* const shared = std::get_if<Shared>(&node.kind)) add_leaf(named(shared->module));
  if (const auto* const tied = std::get_if<Tied>(&node.kind))
    add(tied->module, weight_sizes(named(tied->module)));
  if (const auto* const external = std::get_if<ExternalUse>(&node.kind))
    add(external->module, weight_sizes(named(external->module)));
  if (const auto* const experts = std::get_if<Experts>(&node.kind))
    for (int i = 0; i < experts->experts; ++i) add(node.name + "/e" + std::to_string(i), {2, 2});
  ranges_[node.name] = {first, uses_.size() - first};
}

DataPlan::DataPlan(const Program& program)
    : mode_(program.data.mode),
      magnitude_(program.data.magnitude),
      stage_(program.config.stage),
      seed_(program.data.seed),
      dtype_(program.config.model_dtype()),
      narrowest_(narrowest_of(program)),
      ranks_(program.world.ranks) {
  const WindowBounds bounds = window_bounds(program);
  slots_ = bounds.forwards;
  additions_ = bounds.additions;
  const std::int64_t multiple = odd_divisor(program);
  multiple_ = static_cast<double>(multiple);
  bool is_undivided = false;
  for (const Statement& statement : program.body)
    if (const auto* const resume = std::get_if<Resume>(&statement.kind))
      ranks_ = std::max(ranks_, resume->ranks);
  visit_statements(program.body, [&](const Statement& statement) {
    const auto* const backward = std::get_if<Backward>(&statement.kind);
    is_undivided = is_undivided || (backward && !backward->scale_wrt_gas);
    calls_modules_ = calls_modules_ || std::holds_alternative<CallModule>(statement.kind);
  });
  bits_ = std::min(baseline::significand_bits(narrowest_), kBitsMost) - carry_bits(multiple);
  if (is_undivided) bits_ -= carry_bits(program.config.gradient_accumulation_steps);
  exponent_ = exponent_of(program.config, narrowest_);
  for (const EngineSpec& engine : program.engines)
    tables_.emplace(engine.name, UseTable(program.model_of(engine.name)));
}

DataPlan::DataPlan(const Program& program, const DataPlan& other, DataChange change)
    : DataPlan(other) {
  change_ = std::move(change);
  exponent_ += change_.exponent;
  tables_.clear();
  for (const EngineSpec& engine : program.engines)
    tables_.emplace(engine.name, UseTable(program.model_of(engine.name)));
}

TensorList DataPlan::inputs(const std::string& engine, std::int64_t slot, int rank) const {
  const UseTable& table = tables_.at(engine);
  TensorList inputs = {Tensor::full({kRows}, 0.0, dtype_)};
  for (const Use& use : table.uses())
    inputs.push_back(factor(use, table.uses_of(use.weight) + (calls_modules_ ? 1 : 0), slot, rank));
  return inputs;
}

TensorList DataPlan::silent_inputs(const std::string& engine) const {
  TensorList inputs = {Tensor::full({kRows}, 0.0, dtype_)};
  for (const Use& use : tables_.at(engine).uses())
    inputs.push_back(Tensor::full(use.sizes, 0.0, dtype_));
  return inputs;
}

TensorList DataPlan::module_inputs(const std::string& engine, const std::string& module,
                                   std::int64_t slot, int rank) const {
  const UseTable& table = tables_.at(engine);
  TensorList inputs = {Tensor::full({kRows}, 0.0, dtype_)};
  const UseTable::Range range = table.of(module);
  for (std::size_t i = 0; i < range.count; ++i) {
    Use use = table.uses()[range.first + i];
    use.number = table.uses_of(use.weight);
    inputs.push_back(factor(use, use.number + 1, slot, rank));
  }
  return inputs;
}

double DataPlan::sign_of(const Place& place) {
  return (mix(place.hash + static_cast<std::uint64_t>(place.element)) & 1U) != 0 ? -1.0 : 1.0;
}

// The contribution's place among all, another one for the next element.
std::int64_t DataPlan::turn_of(const Place& place, std::int64_t room) const {
  const std::int64_t step = room % place.contributions == 0 ? 1 : room;
  return (place.contribution + place.element * step + static_cast<std::int64_t>(seed_ % 64)) %
         place.contributions;
}

// A power of two, as far as there is room.
double DataPlan::exact(const Place& place) const {
  const int width = std::max(bits_for(additions_), 1);
  const std::int64_t room = std::max(place.bits / width, 1);
  const std::int64_t turn = turn_of(place, room);
  if (turn >= room) return 0.0;
  const auto used = static_cast<int>(std::min(room, place.contributions)) * width;
  const int spare = std::clamp(place.bits - used, 0, kShiftMost);
  const auto shift = static_cast<int>(place.element % (spare + 1));
  return sign_of(place) * std::ldexp(1.0, shift + static_cast<int>(turn) * width);
}

// A whole number, so small that the sum of all has room.
double DataPlan::identity(const Place& place) const {
  const std::int64_t room = std::max<std::int64_t>((std::int64_t{1} << place.bits) / additions_, 1);
  if (turn_of(place, room) >= room) return 0.0;
  const auto largest =
      static_cast<std::uint64_t>(std::max<std::int64_t>(room / place.contributions, 1));
  const std::uint64_t element = static_cast<std::uint64_t>(place.element) * 7919U;
  const std::uint64_t hash =
      mix(mix(place.hash + element) ^ static_cast<std::uint64_t>(place.contribution));
  return sign_of(place) * static_cast<double>(1 + (hash >> 8U) % largest);
}

// At what the dtypes on the way can just hold (Data::magnitude).
double DataPlan::magnitude(std::int64_t slot, int rank) const {
  const bool is_first = rank == 0;
  switch (magnitude_) {
    case 0:
      return stage_ == 3 ? 2048.0 : 512.0;
    case 1:
      return std::ldexp(is_first ? 5.0 : 2.0, -24);
    case 2:
      return is_first ? 1.0 : std::ldexp(1.0, -9);
    case 3:
      if (narrowest_ == DType::float16) return ranks_ * (is_first ? 32768.0 : 32.0);
      return ranks_ * (is_first ? 174.0 : 2.0);
    default:
      return slot == 0 ? 1.0 : std::ldexp(1.0, -9);
  }
}

// What depends on the weights, between -1/2 and 1/2.
double DataPlan::real(const Place& place) const {
  const auto element = static_cast<std::uint64_t>(place.element);
  const auto contribution = static_cast<std::uint64_t>(place.contribution);
  return static_cast<double>(mix(place.hash + element * 7919U + contribution) >> 40U) * 0x1p-24 -
         0.5;
}

double DataPlan::number(const Place& place, std::int64_t slot, int rank) const {
  switch (mode_) {
    case Data::Mode::exact:
      return multiple_ * std::ldexp(exact(place), exponent_);
    case Data::Mode::identity:
      return multiple_ * std::ldexp(identity(place), exponent_);
    case Data::Mode::magnitude:
      return magnitude(slot, rank);
    case Data::Mode::real:
      break;
  }
  return real(place);
}

Tensor DataPlan::factor(const Use& use, int uses, std::int64_t slot, int rank) const {
  const std::int64_t of_window = slot % slots_;
  Place place{.hash = mix(fnv1a(use.weight) ^ seed_),
              .contribution = (of_window * ranks_ + rank) * uses + use.number,
              .contributions = slots_ * ranks_ * uses,
              .bits = std::max(bits_ - carry_bits(use.summed_rows), 1)};
  std::vector<double> values(static_cast<std::size_t>(numel(use.sizes)));
  for (double& value : values) {
    value = number(place, of_window, rank);
    ++place.element;
  }
  return Tensor::of(values, use.sizes, dtype_);
}

}  // namespace zeroproof::program
