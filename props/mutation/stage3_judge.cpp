#include "props/mutation/stage3_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/mutation/case_parameters.h"
#include "props/mutation/residency_judge.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;
using train::MicroSpec;

// Passes of the same modules, with nothing between or inside them.
bool repeats_one_pass(const CaseSpec& spec) {
  MicroSpec plain;
  plain.losses = spec.micros.front().losses;
  plain.registers = spec.micros.front().registers;
  const auto is_plain = [&](MicroSpec micro) {
    micro.peeks = micro.asks = micro.is_undivided = micro.gathers = 0;
    return micro == plain;
  };
  return spec.engines == 1 && spec.skips_frames == 0 && has_layers_alone(spec) && spec.reads == 0 &&
         spec.returns == 0 && spec.is_tiled == 0 && spec.needs_all == 0 && spec.has_floor == 0 &&
         !has_checkpoints(spec) && std::ranges::all_of(spec.micros, is_plain);
}

bool enters_every_module(const CaseSpec& spec) {
  return spec.skips_frames == 0 && !has_checkpoints(spec) && spec.tile_wrap == 0 &&
         std::ranges::none_of(spec.micros, [](const MicroSpec& micro) {
           return micro.throws != 0 || has_abort(micro) || micro.wrapped != 0 ||
                  micro.interrupt != 0;
         });
}

// Where nothing but its tiles uses the last layer.
int layer_of_tiles(const CaseSpec& spec) {
  const train::CallSpec& last = spec.calls.back();
  const auto leaves = [](const MicroSpec& micro) {
    return micro.has_bypass + micro.past_engine != 0 || has_abort(micro) || micro.wrapped != 0 ||
           micro.interrupt != 0 || micro.outstanding != 0;
  };
  const bool is_alone = spec.is_tiled != 0 && spec.engines == 1 && !is_shared(spec, last) &&
                        spec.reads == 0 && spec.returns == 0 && spec.granularity == 0 &&
                        std::ranges::none_of(spec.micros, leaves);
  return is_alone ? last.layer : -1;
}

std::set<int> idle_layers(const CaseSpec& spec) {
  std::set<int> idle;
  const auto bypasses = [](const MicroSpec& micro) {
    return micro.has_bypass + micro.past_engine != 0;
  };
  for (int i = 0; i < static_cast<int>(spec.layers.size()); ++i) {
    const bool is_read = spec.reads == i + 1 || spec.returns == i + 1;
    const bool is_bypass = i == 0 && std::ranges::any_of(spec.micros, bypasses);
    if (!is_read && !is_bypass && std::ranges::count(spec.calls, i, &train::CallSpec::layer) == 0)
      idle.insert(i);
  }
  return idle;
}

}  // namespace

Stage3Judge::Stage3Judge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      judges_order_(repeats_one_pass(spec) && !gathers_in_middle(spec)),
      judges_owners_(enters_every_module(spec)),
      tiled_layer_(layer_of_tiles(spec)),
      idle_(idle_layers(spec)) {}

void Stage3Judge::on_event(const HookEvent& event) {
  if (spec_.stage != 3) return;
  switch (event.kind) {
    case EventKind::engine_call:
    case EventKind::engine_return:
      return see_call(event);
    case EventKind::zmod_fetch:
      return see_fetch(event);
    case EventKind::bucket_add:
      return see_gradient(event);
    case EventKind::mark:
      return see_mark(event);
    default:
      return;
  }
}

void Stage3Judge::see_call(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  const bool is_call = event.kind == EventKind::engine_call;
  if (!is_call && (method == "z3.step" || method == "z3.zero_grad")) fresh_.insert(event.engine);
  if (method == "engine.forward") {
    if (is_call) added_.clear();
    if (is_call) is_reset_ = false;
    forwards_ += is_call ? 1 : -1;
  }
  if (!is_call || !cost_finding_.empty()) return;
  if (method == "coord.reset_step") {
    if (std::exchange(is_reset_, true) && forwards_ == 1)
      cost_finding_ = "the order of modules begins twice in one forward";
    ++resets_;
  }
  if (method == "coord.invalidate_trace" && judges_order_ && resets_ > 2)
    cost_finding_ = "an order of modules was given up in the third of equal passes";
}

// stage3_module_granularity_threshold: elements of each of its two modules up to which a layer
// fetches for both.
void Stage3Judge::see_fetch(const HookEvent& event) {
  const std::string_view module = without_engine(names_.text(event.name));
  if (!expected_.empty() && judges_owners_ && module != expected_ && cost_finding_.empty())
    cost_finding_ =
        fmt::format("{} is larger than the threshold and fetches nothing itself", expected_);
  expected_.clear();
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    const train::LayerSpec& layer = spec_.layers[i];
    if (layer.is_raw != 0 || spec_.granularity == 0) continue;
    const bool is_leaf = layer.elements() / 2 <= spec_.granularity;
    const std::string inner = fmt::format("l{}.linear", i);
    if (is_leaf && module == inner && cost_finding_.empty())
      cost_finding_ = fmt::format("{} is no larger than the threshold and fetches itself", inner);
    if (!is_leaf && module == fmt::format("l{}", i) && event.is_forward) expected_ = inner;
  }
}

int Stage3Judge::layer_of(NameId parameter) const {
  const auto layer = layer_of_name(without_engine(names_.text(parameter)));
  return layer ? static_cast<int>(*layer) : -1;
}

void Stage3Judge::see_gradient(const HookEvent& event) {
  const int layer = layer_of(event.param);
  if (layer < 0 || !cost_finding_.empty()) return;
  if (idle_.contains(layer))
    cost_finding_ = fmt::format("{} has no gradient, and one is reduced", names_.text(event.param));
  if (layer == tiled_layer_ && ++added_[event.param] > 1)
    cost_finding_ =
        fmt::format("{} is reduced for more than the last of its tiles", names_.text(event.param));
}

void Stage3Judge::see_mark(const HookEvent& event) {
  constexpr std::string_view kHolds = "window_holds:";
  const std::string_view label = names_.text(event.name);
  if (!label.starts_with(kHolds) || fresh_.erase(event.engine) == 0) return;
  if (label.substr(kHolds.size()) != "1" && count_finding_.empty())
    count_finding_ = fmt::format("the first backward of a window leaves {}", label);
}

}  // namespace zeroproof::mutation
