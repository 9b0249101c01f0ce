#include "props/replay/rank_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace zeroproof {
namespace {

bool is_decision(std::string_view label) {
  return label.starts_with("overflow:") || label.starts_with("loss_scale:") ||
         label == "step_applied" || label == "step_skipped";
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15U;
  hash = (hash ^ value) * kMultiplier;
  return hash ^ (hash >> 29);
}

}  // namespace

std::string_view GradientWindow::property_number() const {
  if (backwards <= 1) return "P26";
  if (has_later_step) return "P27";
  if (forwards <= 1) return "P28";
  return has_later_forward ? "P30" : "P29";
}

void RankDigest::declare_group(std::string_view name, const std::vector<std::int32_t>& ranks) {
  group_ranks_.insert_or_assign(std::string(name), fmt::format("{}", fmt::join(ranks, ",")));
}

void RankDigest::add_tensor(std::string_view role, std::string_view name,
                            const std::vector<double>* values) {
  if (has_stepped_) return;
  if (role == "param") {
    for (const char byte : name)
      parameters_hash_ = mix(parameters_hash_, static_cast<unsigned char>(byte));
    if (values != nullptr)
      for (const double value : *values)
        parameters_hash_ = mix(parameters_hash_, std::bit_cast<std::uint64_t>(value));
  }
  if (role != "grad") return;
  const std::size_t size = values == nullptr ? 0 : values->size();
  if (values_kept_ + size > kValuesMax) {
    is_over_cap_ = true;
    return;
  }
  values_kept_ += size;
  Gradient gradient{std::string(name), std::nullopt, property_number(), last_lc_};
  if (values != nullptr) gradient.values = *values;
  gradients_.push_back(std::move(gradient));
}

void RankDigest::on_event(const HookEvent& event, const NameTable& names) {
  last_lc_ = event.lc;
  if (event.kind == EventKind::opt_zero_grad) windows_.clear();
  if (event.kind == EventKind::coll_issue) {
    const std::string_view group = names.text(event.group);
    const auto known = group_ranks_.find(group);
    const std::string& ranks = known == group_ranks_.end() ? std::string(group) : known->second;
    collectives_[ranks].add(
        event.lc, fmt::format("{} of {} bytes in group {} (key {}:{})", names.text(event.name),
                              event.bytes, group, group, event.index));
  } else if (event.kind == EventKind::zparam_gather_begin) {
    std::string params;
    for (const NameId param : event.params) params += fmt::format(" {}", names.text(param));
    gathers_.add(event.lc, "gather of" + params);
  } else if (event.kind == EventKind::mark) {
    if (is_decision(names.text(event.name)))
      decisions_.add(event.lc, fmt::format("decision {}", names.text(event.name)));
  } else if (event.kind == EventKind::engine_call || event.kind == EventKind::engine_return) {
    follow_window(event, names.text(event.name));
  }
}

void RankDigest::follow_window(const HookEvent& event, std::string_view name) {
  const bool is_call = event.kind == EventKind::engine_call;
  if (!is_call || event.transforms > 0) {
    if (!is_call && name == "engine.step")
      for (auto& [engine, window] : windows_)
        window.has_later_step = window.has_later_step || window.backwards > 0;
    return;
  }
  if (name == "engine.take_model_step") has_stepped_ = true;
  if (name == "engine.take_model_step" || name.ends_with(".zero_grad")) {
    if (event.engine.is_none())
      windows_.clear();
    else
      windows_.erase(event.engine);
  }
  if (name == "engine.forward" && event.graph_task.is_none()) {
    GradientWindow& window = windows_[event.engine];
    window.forwards += 1;
    window.has_later_forward = window.has_later_forward || window.backwards > 0;
  }
  if (name == "engine.backward_epilogue") windows_[event.engine].backwards += 1;
}

// A gradient record does not say which engine it is of: the most particular window counts.
std::string_view RankDigest::property_number() const {
  std::string_view number = "P26";
  for (const auto& [engine, window] : windows_) number = std::max(number, window.property_number());
  return number;
}

}  // namespace zeroproof
