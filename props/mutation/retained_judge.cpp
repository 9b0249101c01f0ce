#include "props/mutation/retained_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/mutation/case_parameters.h"
#include "props/train/case_shape.h"
#include "props/train/case_storage.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;
using train::MicroSpec;

// Every micro-batch is such a one, and nothing else gathers or gives up.
bool runs_alone(const CaseSpec& spec, const MicroSpec& all) {
  const auto is_one = [&](MicroSpec micro) {
    micro.peeks = micro.asks = micro.is_undivided = 0;
    return micro == all;
  };
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  return spec.stage == 3 && spec.ranks > 1 && spec.engines == 1 &&
         spec.skips_frames + spec.prefetch + spec.persistence == 0 && has_layers_alone(spec) &&
         spec.reads + spec.returns + spec.granularity + spec.is_tiled + spec.needs_all == 0 &&
         spec.has_floor + spec.first_ranks + spec.reorders == 0 &&
         spec.live >= train::elements_of_layers(spec) &&
         std::ranges::none_of(spec.calls, is_used_again) &&
         std::ranges::all_of(spec.micros, is_one);
}

// Two forwards and four backwards.
bool interleaves_alone(const CaseSpec& spec) {
  return spec.heads == 2 && !has_checkpoints(spec) &&
         runs_alone(spec, {.outstanding = static_cast<int>(train::Outstanding::interleaved)});
}

// Two backwards of one graph, which goes through checkpoints with graph tasks of their own.
bool repeats_alone(const CaseSpec& spec) {
  const auto has_own_task = [](const train::CallSpec& call) {
    return static_cast<train::Wrap>(call.wrap) != train::Wrap::non_reentrant;
  };
  return spec.heads == 1 && has_checkpoints(spec) &&
         std::ranges::all_of(spec.calls, has_own_task) && runs_alone(spec, {.again = 1});
}

// What its parameters are called.
void add_parameters(const CaseSpec& spec, const NameTable& names, const train::CallSpec& call,
                    std::set<NameId>& all) {
  const std::string module = module_of_layer(spec, static_cast<std::size_t>(call.layer));
  for (const char* const kind : {"weight", CaseSpec::kTwin, "bias"})
    if (const NameId id = names.find(fmt::format("{}.{}", module, kind)); !id.is_none())
      all.insert(id);
}

// Of all calls but the last two, of which each loss has one.
std::set<NameId> behind_both(const CaseSpec& spec, const NameTable& names) {
  std::set<NameId> all;
  for (std::size_t i = 0; i + 2 < spec.calls.size(); ++i)
    add_parameters(spec, names, spec.calls[i], all);
  return all;
}

// Of the calls in no checkpoint, as far as they are trained.
std::set<NameId> in_no_checkpoint(const CaseSpec& spec, const NameTable& names) {
  std::set<NameId> all;
  for (const train::CallSpec& call : spec.calls)
    if (call.wrap == 0 && is_trained(spec, call)) add_parameters(spec, names, call, all);
  return all;
}

}  // namespace

RetainedJudge::RetainedJudge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      interleaves_(interleaves_alone(spec)),
      repeats_(repeats_alone(spec)) {}

void RetainedJudge::on_event(const HookEvent& event) {
  if (!interleaves_ && !repeats_) return;
  switch (event.kind) {
    case EventKind::engine_call:
      if (names_.text(event.name) == "engine.forward") ++forwards_;
      return;
    case EventKind::engine_return:
      if (names_.text(event.name) == "engine.backward_epilogue") ++backwards_;
      if (names_.text(event.name) == "engine.step") forwards_ = backwards_ = 0;
      return;
    case EventKind::zparam_gather_begin:
      begun_.clear();
      if (!is_last_backward()) return;
      if (kept_.empty())
        kept_ = interleaves_ ? behind_both(spec_, names_) : in_no_checkpoint(spec_, names_);
      for (const NameId parameter : event.params)
        if (kept_.contains(parameter)) begun_.insert(parameter);
      return;
    case EventKind::zparam_gather_end:
      return begun_.clear();
    case EventKind::coll_issue:
      return see_collective();
    default:
      return;
  }
}

bool RetainedJudge::is_last_backward() const {
  return interleaves_ ? forwards_ == 2 && backwards_ == 3 : forwards_ == 1 && backwards_ == 1;
}

void RetainedJudge::see_collective() {
  if (!begun_.empty() && finding_.empty())
    finding_ = fmt::format("{} is kept for this backward of a retained graph, and travels again",
                           names_.text(*begun_.begin()));
  begun_.clear();
}

}  // namespace zeroproof::mutation
