#include "props/mutation/kept_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/mutation/case_parameters.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;
using train::MicroSpec;

// Two backwards over each forward, of modules that run once in it, and nothing else that gathers.
bool keeps_for_second(const CaseSpec& spec) {
  const auto is_plain = [](MicroSpec micro) {
    micro.peeks = micro.asks = micro.is_undivided = micro.repeats = 0;
    return micro == MicroSpec();
  };
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  return spec.stage == 3 && spec.engines == 1 && spec.skips_frames == 0 && spec.heads == 2 &&
         spec.prefetch > 0 && has_layers_alone(spec) && spec.reads + spec.returns == 0 &&
         spec.granularity == 0 && spec.is_tiled == 0 && spec.needs_all == 0 &&
         !has_checkpoints(spec) && std::ranges::none_of(spec.calls, is_used_again) &&
         std::ranges::all_of(spec.micros, is_plain);
}

}  // namespace

KeptJudge::KeptJudge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec), names_(names), is_judged_(keeps_for_second(spec)) {}

void KeptJudge::on_event(const HookEvent& event) {
  if (!is_judged_) return;
  switch (event.kind) {
    case EventKind::engine_call:
      if (names_.text(event.name) != "engine.forward") return;
      kept_.clear();
      admitted_.clear();
      reclaimed_.clear();
      backwards_ = 0;
      return;
    case EventKind::engine_return:
      return see_return(names_.text(event.name));
    case EventKind::gt_begin:
      ++graph_tasks_;
      return;
    case EventKind::gt_end:
      --graph_tasks_;
      return;
    case EventKind::zmod_fetch:
      return begin_fetch(event.name);
    case EventKind::zmod_release:
      return see_release(event);
    case EventKind::zparam_gather_begin:
      return see_gather(event);
    case EventKind::coll_issue:
      return begun_.clear();
    case EventKind::zparam_gather_end:
      return see_gathered(event);
    case EventKind::zparam_partition:
      for (const NameId parameter : event.params) {
        whole_.erase(parameter);
        if (admitted_.contains(parameter)) kept_.insert(parameter);
      }
      return;
    default:
      return;
  }
}

void KeptJudge::begin_fetch(NameId module) {
  fetched_ = module;
  room_ = std::max<std::int64_t>(spec_.live - elements(whole_) - elements(kept_), 0);
  ahead_ = last_ = 0;
}

void KeptJudge::see_gather(const HookEvent& event) {
  const std::string_view module = names_.text(fetched_);
  begun_.clear();
  for (const NameId parameter : event.params) {
    if (backwards_ == 1) begun_.insert(parameter);
    whole_.insert(parameter);
    kept_.erase(parameter);
    const std::string_view name = names_.text(parameter);
    if (fetched_.is_none() || name.substr(0, name.rfind('.')) == module) continue;
    ahead_ += elements(parameter);
    last_ = std::max(last_, elements(parameter));
  }
}

// What comes without a collective was kept; one rank alone needs none for a parameter.
void KeptJudge::see_gathered(const HookEvent& event) {
  if (spec_.ranks == 1) return;
  for (const NameId parameter : event.params)
    if (begun_.contains(parameter)) reclaimed_.insert(parameter);
  if (elements(reclaimed_) > spec_.live && finding_.empty())
    finding_ = fmt::format("{} elements are kept for another backward, and there is room for {}",
                           elements(reclaimed_), spec_.live);
}

// In the first backward a module's end keeps what it has, as far as that fits.
void KeptJudge::see_release(const HookEvent& event) {
  if (event.is_forward || backwards_ > 0 || graph_tasks_ == 0) return;
  for (const char* const kind : {"weight", CaseSpec::kTwin, "bias"}) {
    const std::string name = fmt::format("{}.{}", names_.text(event.name), kind);
    const NameId parameter = names_.find(name);
    if (parameter.is_none() || is_persistent_parameter(spec_, name)) continue;
    if (elements(admitted_) + elements(parameter) <= spec_.live) admitted_.insert(parameter);
  }
}

void KeptJudge::see_return(std::string_view method) {
  if (method == "z3.pre_forward" || method == "z3.pre_backward") judge();
  if (method != "engine.backward_epilogue" || ++backwards_ < 2) return;
  kept_.clear();
  admitted_.clear();
}

// As P69 has it: the last one may be larger than the room that was left.
void KeptJudge::judge() {
  if (!fetched_.is_none() && ahead_ > 0 && ahead_ >= room_ + last_ && finding_.empty())
    finding_ = fmt::format(
        "the fetch of {} gathers {} elements ahead, the last one's {}, where {} "
        "have room beside what is kept for another backward",
        names_.text(fetched_), ahead_, last_, room_);
  fetched_ = {};
}

std::int64_t KeptJudge::elements(NameId parameter) const {
  return elements_of_parameter(spec_, names_.text(parameter));
}

std::int64_t KeptJudge::elements(const std::set<NameId>& parameters) const {
  std::int64_t sum = 0;
  for (const NameId parameter : parameters) sum += elements(parameter);
  return sum;
}

}  // namespace zeroproof::mutation
