#include "props/mutation/gather_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/mutation/case_parameters.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;
using train::MicroSpec;

// Where everything is one dtype, everything travels in one.
int wire_dtypes(const CaseSpec& spec) {
  return static_cast<train::Precision>(spec.precision) == train::Precision::autocast ? 2 : 1;
}

bool is_undisturbed(const CaseSpec& spec) {
  return spec.engines == 1 && std::ranges::none_of(spec.micros, [](const MicroSpec& micro) {
           return micro.interrupt != 0 || has_abort(micro) || is_refused_late(micro);
         });
}

// A persistent parameter is given up by a step, a load and a user's context alone, and by an
// operation of a backward that gathers it behind such a context.
bool gives_up_alone(const CaseSpec& spec) {
  return is_undisturbed(spec) && spec.returns == 0 &&
         std::ranges::none_of(spec.micros, [](const MicroSpec& micro) {
           return micro.looks + micro.has_bypass + micro.past_engine != 0;
         });
}

// An order that is given up takes along what was on its way for it.
bool gives_up_anything(std::string_view method) {
  return method == "z3.gathered_parameters" || method == "engine.step" ||
         method == "engine.load_checkpoint" || method == "engine.save_checkpoint" ||
         method == "coord.invalidate_trace";
}

}  // namespace

GatherJudge::GatherJudge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      dtypes_(wire_dtypes(spec)),
      judges_persistent_(gives_up_alone(spec)),
      judges_reclaimed_(spec.ranks > 1 && spec.skips_frames == 0 && is_undisturbed(spec)) {}

void GatherJudge::on_event(const HookEvent& event) {
  if (spec_.stage != 3) return;
  const bool has_just_begun = std::exchange(has_just_begun_, false);
  switch (event.kind) {
    case EventKind::zparam_gather_begin:
      gathered_.insert(event.params.begin(), event.params.end());
      issued_ = 0;
      has_just_begun_ = true;
      return;
    case EventKind::zparam_gather_end:
      if (has_just_begun) see_reclaimed(event);
      return;
    case EventKind::coll_issue:
    case EventKind::coll_complete:
      return see_collective(event);
    case EventKind::zparam_partition:
      return see_partition(event);
    case EventKind::zmod_fetch:
      fetched_.insert(event.name);
      return;
    case EventKind::zmod_release:
      return see_whole(event);
    case EventKind::engine_call:
      return see_call(event);
    case EventKind::engine_return:
      return see_return(event);
    case EventKind::gt_begin:
      if (graph_tasks_++ > 0) return;
      reclaimed_.clear();
      reclaimed_elements_ = 0;
      return;
    case EventKind::gt_end:
      --graph_tasks_;
      return;
    default:
      return;
  }
}

// One for all that a fetch needs, of each dtype, and none where this rank has it all.
void GatherJudge::see_collective(const HookEvent& event) {
  if (!names_.text(event.name).starts_with("all_gather")) return;
  const Collective collective{event.engine, event.group, event.index};
  if (event.kind == EventKind::coll_complete) {
    outstanding_.erase(collective);
    return;
  }
  if (event.is_async) outstanding_.insert(collective);
  ++issued_;
  ++issued_by_step_;
  if (!collective_finding_.empty()) return;
  if (event.is_async && spec_.ranks == 1)
    collective_finding_ = "an asynchronous all-gather of a rank that has everything";
  if (issued_ > dtypes_)
    collective_finding_ =
        fmt::format("{} all-gathers for one list of parameters of {} dtypes", issued_, dtypes_);
}

void GatherJudge::see_call(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  issued_ = 0;
  if (method == "z3.post_step") issued_by_step_ = 0;
  if (gives_up_anything(method)) ++freeing_calls_;
  if (method == "engine.load_checkpoint") has_reset_ = false;
  if (method != "coord.release_and_reset_all") return;
  has_reset_ = true;
  std::erase_if(gathered_, [&](NameId parameter) {
    return names_.text(parameter).starts_with("e1.") == (event.engine.value == 1);
  });
}

void GatherJudge::see_return(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  issued_ = 0;
  if (method == "z3.post_step" && issued_by_step_ > dtypes_ && collective_finding_.empty())
    collective_finding_ = fmt::format("{} all-gathers behind a step for parameters of {} dtypes",
                                      issued_by_step_, dtypes_);
  if (gives_up_anything(method)) --freeing_calls_;
  if (event.is_exceptional()) return;
  if (method == "engine.load_checkpoint" && has_reset_) judge_persistent(event.engine);
  if (method != "engine.backward_epilogue" || spec_.skips_frames != 0) return;
  const auto is_own = [&](const Collective& it) { return std::get<EngineId>(it) == event.engine; };
  if (std::ranges::any_of(outstanding_, is_own) && collective_finding_.empty())
    collective_finding_ = "an asynchronous all-gather has no end behind the epilogue";
}

void GatherJudge::see_partition(const HookEvent& event) {
  if (!judges_persistent_ || freeing_calls_ > 0 || graph_tasks_ == 0) return;
  for (const NameId parameter : event.params)
    if (is_persistent_parameter(spec_, names_.text(parameter)) && given_finding_.empty())
      given_finding_ = fmt::format("{} is persistent and was given up within a backward",
                                   names_.text(parameter));
}

std::vector<std::string> GatherJudge::parameters_of_module(std::string_view module) const {
  const std::string_view own = without_engine(module);
  std::vector<std::string> parameters;
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    const train::LayerSpec& layer = spec_.layers[i];
    if (own != module_of_layer(spec_, i)) continue;
    if (layer.outputs == 0) continue;
    parameters.push_back(fmt::format("{}.weight", module));
    if (layer.has_twin != 0) parameters.push_back(fmt::format("{}.{}", module, CaseSpec::kTwin));
    if (layer.has_bias != 0) parameters.push_back(fmt::format("{}.bias", module));
  }
  return parameters;
}

// A module that ends has used its parameters, and behind initialize each is a part alone; but for
// one that fails for want of memory before it fetches them: what it fetched in an earlier pass,
// whose end nobody told, is taken for this one's.
void GatherJudge::see_whole(const HookEvent& event) {
  const auto runs_short = [](const train::MicroSpec& micro) { return micro.shortage != 0; };
  if (fetched_.erase(event.name) == 0 || !kept_finding_.empty()) return;
  if (std::ranges::any_of(spec_.micros, runs_short)) return;
  for (const std::string& parameter : parameters_of_module(names_.text(event.name)))
    if (!gathered_.contains(names_.find(parameter)))
      kept_finding_ = fmt::format("{} is whole, and nobody gathered it", parameter);
}

// What the first of two backwards kept for the second.
void GatherJudge::see_reclaimed(const HookEvent& event) {
  if (!judges_reclaimed_ || graph_tasks_ == 0) return;
  for (const NameId parameter : event.params)
    if (reclaimed_.insert(parameter).second)
      reclaimed_elements_ += elements_of_parameter(spec_, names_.text(parameter));
  if (reclaimed_elements_ > spec_.live && kept_finding_.empty())
    kept_finding_ = fmt::format("{} elements were kept for a graph, and {} may be live",
                                reclaimed_elements_, spec_.live);
}

void GatherJudge::judge_persistent(EngineId engine) {
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    const std::string module = (engine.value == 1 ? "e1." : "") + module_of_layer(spec_, i);
    for (const std::string& parameter : parameters_of_module(module))
      if (is_persistent_parameter(spec_, parameter) &&
          !gathered_.contains(names_.find(parameter)) && given_finding_.empty())
        given_finding_ = fmt::format("{} is persistent and not there after a load", parameter);
  }
}

}  // namespace zeroproof::mutation
