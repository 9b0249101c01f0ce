#include "props/parameter_book.h"

#include <algorithm>

#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

constexpr std::string_view kLeaf = "leaf_module:";
constexpr std::string_view kExternal = "external_parameter:";
constexpr std::string_view kUnnamed = "unnamed[";  // with a shape: of a model that is not watched
constexpr std::string_view kRootName = "model";    // recorders call it so when it has no name

std::string owner_of(std::string_view param) {
  const std::size_t dot = param.rfind('.');
  return std::string(dot == std::string_view::npos ? kRootName : param.substr(0, dot));
}

Residence residence_of(std::string_view status) {
  if (status == "AVAILABLE") return Residence::available;
  if (status == "INFLIGHT") return Residence::inflight;
  return status == "NOT_AVAILABLE" ? Residence::not_available : Residence::unknown;
}

}  // namespace

bool ParameterBook::is_about(const HookEvent& event, Method method) {
  switch (event.kind) {
    case EventKind::zparam_gather_begin:
    case EventKind::zparam_gather_end:
    case EventKind::zparam_partition:
    case EventKind::zparam_status:
    case EventKind::zmod_fetch:
    case EventKind::zmod_release:
    case EventKind::bucket_add:
    case EventKind::mark:
      return true;
    case EventKind::engine_call:
      return method == Method::release_leftovers || method == Method::release_all;
    default:
      return false;
  }
}

void ParameterBook::apply(const HookEvent& event, Method method) {
  switch (event.kind) {
    case EventKind::zparam_gather_begin:
      return set(event.params, Residence::inflight);
    case EventKind::zparam_gather_end:
      return set(event.params, Residence::available);
    case EventKind::zparam_partition:
      return set(event.params, Residence::not_available);
    case EventKind::zparam_status: {
      if (is_unnamed(event.param)) return;
      Parameter& parameter = note(event.param);
      if (event.numel != 0) parameter.residence = residence_of(names_->text(event.name));
      parameter.is_persistent = event.is_persistent;
      if (event.numel >= 0) parameter.numel = event.numel;
      return;
    }
    case EventKind::zmod_fetch:
      held_by_.insert(event.name);
      return;
    case EventKind::zmod_release:
      held_by_.erase(event.name);
      return;
    case EventKind::bucket_add: {
      if (is_unnamed(event.param)) return;
      Parameter& parameter = note(event.param);
      if (event.numel >= 0) parameter.numel = event.numel;
      return;
    }
    case EventKind::mark:
      return read_mark(event);
    default:
      if (is_about(event, method)) held_by_.clear();
  }
}

void ParameterBook::read_mark(const HookEvent& event) {
  const std::string_view label = names_->text(event.name);
  const bool is_over = label == "gradients_abandoned" || label == "backward_abandoned" ||
                       label == "backward_left_modules";
  if (is_over) held_by_.clear();
  if (label.starts_with(kLeaf)) leaves_.emplace(label.substr(kLeaf.size()));
  if (label == "gather_abandoned") note(event.param).residence = Residence::not_available;
  if (label == "zero_sized_parameter") {  // it has no elements on any rank
    note(event.param).numel = 0;
    note(event.param).residence = Residence::unknown;
  }
  if (!label.starts_with(kExternal) || event.param.is_none()) return;
  note(event.param).is_external = true;
  external_[std::string(label.substr(kExternal.size()))].insert(event.param);
}

ParameterBook::Parameter& ParameterBook::note(NameId param) {
  const auto [known, is_new] = parameters_.try_emplace(param);
  if (is_new) {
    known->second.owner = owner_of(names_->text(param));
    owned_[known->second.owner].push_back(param);
  }
  return known->second;
}

void ParameterBook::set(const std::vector<NameId>& params, Residence residence) {
  is_sharded_ = true;
  for (const NameId param : params) {
    if (is_unnamed(param)) continue;
    if (Parameter& known = note(param); known.numel != 0) known.residence = residence;
  }
}

bool ParameterBook::is_unnamed(NameId param) const {
  return names_->text(param).starts_with(kUnnamed);
}

void ParameterBook::note_unseen_gather() {
  for (auto& [param, known] : parameters_)
    if (known.residence == Residence::not_available) known.residence = Residence::unknown;
}

const ParameterBook::Parameter* ParameterBook::find(NameId param) const {
  const auto known = parameters_.find(param);
  return known == parameters_.end() ? nullptr : &known->second;
}

Residence ParameterBook::residence(NameId param) const {
  const Parameter* known = find(param);
  return known == nullptr ? Residence::unknown : known->residence;
}

bool ParameterBook::is_below(NameId param, std::string_view module) const {
  const std::string_view name = names_->text(param);
  return name.starts_with(module) && name.size() > module.size() && name[module.size()] == '.';
}

bool ParameterBook::is_used_by(NameId param, NameId module) const {
  const Parameter* known = find(param);
  const std::string_view name = names_->text(module);
  if (known == nullptr) return false;
  if (known->owner == name || (leaves_.contains(name) && is_below(param, name))) return true;
  const auto registered = external_.find(name);
  return registered != external_.end() && registered->second.contains(param);
}

std::vector<NameId> ParameterBook::of_module(NameId module) const {
  const std::string_view name = names_->text(module);
  std::vector<NameId> params;
  const auto owned = owned_.find(name);
  if (owned != owned_.end()) params = owned->second;
  const bool is_alone = !leaves_.contains(name) && !external_.contains(name);
  if (is_alone) return params;
  params.clear();
  for (const auto& [param, known] : parameters_)
    if (is_used_by(param, module)) params.push_back(param);
  return params;
}

NameId ParameterBook::holder(NameId param) const {
  for (const NameId module : held_by_)
    if (is_used_by(param, module)) return module;
  return NameId::none();
}

bool ParameterBook::is_below_held(NameId param) const {
  return std::ranges::any_of(held_by_,
                             [&](NameId module) { return is_below(param, names_->text(module)); });
}

void ParameterBook::append_state(std::string& bytes) const {
  for (const auto& [param, known] : parameters_) {
    append_bytes(bytes, param.value);
    append_bytes(bytes, static_cast<std::int64_t>(known.residence));
  }
  for (const NameId module : held_by_) append_bytes(bytes, module.value);
}

}  // namespace zeroproof
