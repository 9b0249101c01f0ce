#include "props/museum/retained_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/museum/case_parameters.h"
#include "props/train/case_storage.h"

namespace zeroproof::museum {
namespace {

using train::CaseSpec;
using train::MicroSpec;

// Two forwards, four backwards, and nothing else that gathers or gives up.
bool interleaves_alone(const CaseSpec& spec) {
  const auto is_interleaved = [](MicroSpec micro) {
    micro.peeks = micro.asks = micro.is_undivided = 0;
    return micro == MicroSpec{.outstanding = static_cast<int>(train::Outstanding::interleaved)};
  };
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  return spec.stage == 3 && spec.ranks > 1 && spec.engines == 1 && spec.heads == 2 &&
         spec.skips_frames + spec.prefetch + spec.persistence + spec.experts == 0 &&
         spec.reads + spec.returns + spec.granularity + spec.is_tiled + spec.needs_all == 0 &&
         spec.has_floor + spec.first_ranks + spec.reorders == 0 &&
         spec.live >= train::elements_of_layers(spec) && !has_checkpoints(spec) &&
         std::ranges::none_of(spec.calls, is_used_again) &&
         std::ranges::all_of(spec.micros, is_interleaved);
}

// All calls but the last two, of which each loss has one.
std::set<NameId> behind_both(const CaseSpec& spec, const NameTable& names) {
  std::set<NameId> all;
  for (std::size_t i = 0; i + 2 < spec.calls.size(); ++i) {
    const auto layer = static_cast<std::size_t>(spec.calls[i].layer);
    const std::string module = module_of_layer(spec, layer);
    for (const char* const kind : {"weight", CaseSpec::kTwin, "bias"})
      if (const NameId id = names.find(fmt::format("{}.{}", module, kind)); !id.is_none())
        all.insert(id);
  }
  return all;
}

}  // namespace

RetainedJudge::RetainedJudge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec), names_(names), is_judged_(interleaves_alone(spec)) {}

void RetainedJudge::on_event(const HookEvent& event) {
  if (!is_judged_) return;
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
      if (forwards_ != 2 || backwards_ != 3) return;
      if (shared_.empty()) shared_ = behind_both(spec_, names_);
      for (const NameId parameter : event.params)
        if (shared_.contains(parameter)) begun_.insert(parameter);
      return;
    case EventKind::zparam_gather_end:
      return begun_.clear();
    case EventKind::coll_issue:
      return see_collective();
    default:
      return;
  }
}

void RetainedJudge::see_collective() {
  if (!begun_.empty() && finding_.empty())
    finding_ = fmt::format("{} is kept for this backward of a retained graph, and travels again",
                           names_.text(*begun_.begin()));
  begun_.clear();
}

}  // namespace zeroproof::museum
