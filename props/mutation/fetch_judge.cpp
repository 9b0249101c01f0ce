#include "props/mutation/fetch_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "props/mutation/case_parameters.h"
#include "props/train/case_storage.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;

// Elements of all that a module fetches, at most. `reads`: what is read past its layer.
std::int64_t elements_of_module(const CaseSpec& spec, std::string_view module) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (module == module_of_layer(spec, i)) elements += spec.layers[i].elements();
  }
  const bool may_read = module == CaseSpec::kReader || !module.starts_with('l');
  if (!may_read || spec.reads == 0) return elements;
  const train::LayerSpec& read = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  return elements + read.outputs * read.inputs;
}

// Whatever is whole, there is room for more, and no graph keeps anything.
bool has_room_to_live(const CaseSpec& spec) {
  if (spec.live >= CaseSpec::kManyElements) return true;
  const auto keeps = [](const train::MicroSpec& micro) {
    return micro.keeps != 0 || micro.creates != 0 || micro.outstanding != 0;
  };
  return spec.heads == 1 && has_layers_alone(spec) && spec.live > train::elements_of_layers(spec) &&
         std::ranges::none_of(spec.micros, keeps);
}

// Frozen parameters stay for a recompute's sake, an abort and tiles leave the order.
bool follows_any_order(const CaseSpec& spec) {
  const auto is_frozen = [](const train::LayerSpec& layer) {
    return layer.is_frozen != 0 || layer.is_weight_frozen != 0;
  };
  if (spec.owns != 0) return false;  // the root's fetch is that of a pass
  // Its recompute begins in the middle of a module's backward.
  const auto recomputes_late = [](const train::CallSpec& call) { return call.wrap == 2; };
  if (std::ranges::any_of(spec.calls, recomputes_late)) return false;
  // A raw layer's backward does not need its weight, so that a recompute may end behind it.
  // What is gathered ahead of a module need not be all of it.
  if (std::ranges::any_of(spec.layers, [](const auto& layer) { return layer.has_twin != 0; }))
    return false;
  const auto is_raw = [](const train::LayerSpec& layer) { return layer.is_raw != 0; };
  if (std::ranges::any_of(spec.layers, is_raw) && has_checkpoints(spec)) return false;
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  if (std::ranges::any_of(spec.calls, is_used_again)) return false;
  // A bypass is one more use of its layer; a transform has a backward of its own. What throws
  // leaves the order in its middle.
  const auto leaves = [](const train::MicroSpec& micro) {
    const bool has_turns = micro.outstanding > static_cast<int>(train::Outstanding::summed);
    return has_abort(micro) || is_refused_late(micro) || micro.throws != 0 || has_turns ||
           micro.has_bypass + micro.past_engine != 0 || micro.looks != 0 ||
           micro.idle_forward >= 3 || micro.registers != 0 || micro.idles_first != 0 ||
           gathers_while_running(micro);
  };
  return spec.stage == 3 && spec.skips_frames == 0 && spec.engines == 1 && spec.is_tiled == 0 &&
         spec.granularity == 0 && spec.returns == 0 && has_room_to_live(spec) &&
         std::ranges::none_of(spec.layers, is_frozen) && std::ranges::none_of(spec.micros, leaves);
}

// A weight that is read past its layer is nobody's own.
bool follows_order(const CaseSpec& spec) {
  return spec.reads == 0 && follows_any_order(spec);
}

// How far ahead something has to be used again to stay; what is gathered ahead may hide it.
std::int64_t judged_reuse(const CaseSpec& spec) {
  const bool is_judged = follows_any_order(spec) && spec.prefetch == 0 && spec.experts == 0;
  return is_judged ? spec.reuse : 0;
}

// Two backwards over one forward, and nothing else that gathers.
bool retains_graphs(const CaseSpec& spec) {
  // One that fails, wherever, may have freed any part of a graph.
  const auto is_plain = [](const train::MicroSpec& micro) {
    return micro.outstanding == 0 && micro.idle_forward < 3 && !has_abort(micro) &&
           micro.interrupt == 0 && micro.has_bypass + micro.past_engine == 0 &&
           micro.gathers == 0 && micro.looks == 0 && micro.detour == 0;
  };
  // The second backward alone reaches the last call, which reclaims nothing that others hold.
  const int last = spec.calls.back().layer;
  if (std::ranges::count(spec.calls, last, &train::CallSpec::layer) > 1) return false;
  // What stays whole behind forward for its reuse is given up without having been used.
  return spec.stage == 3 && spec.heads == 2 && spec.engines == 1 && spec.ranks > 1 &&
         spec.reuse == 0 && spec.prefetch == 0 && has_layers_alone(spec) && spec.reads == 0 &&
         spec.live >= 2 * train::elements_of_layers(spec) && spec.is_tiled == 0 &&
         spec.skips_frames == 0 && std::ranges::all_of(spec.micros, is_plain) &&
         !has_checkpoints(spec);
}

// A context of which the end is refused.
bool moves_weight(const train::MicroSpec& micro) {
  return static_cast<train::Misuse>(micro.misuse) == train::Misuse::moved_weight;
}

// A user's context gives persistent ones up, too, and they come back in any way.
bool is_all_persistent(const CaseSpec& spec) {
  const auto gathers = [](const train::MicroSpec& micro) {
    return micro.gathers != 0 || micro.looks != 0 || micro.outdates != 0 || micro.detour != 0 ||
           moves_weight(micro) || gathers_while_running(micro);
  };
  if (std::ranges::any_of(spec.micros, gathers)) return false;
  if (spec.stage != 3 || spec.skips_frames != 0 || spec.persistence_all < CaseSpec::kManyElements)
    return false;
  const auto persists = [&](const train::LayerSpec& layer) {
    return layer.inputs * layer.outputs <= spec.persistence && layer.outputs <= spec.persistence &&
           layer.outputs > 0;
  };
  return has_layers_alone(spec) && std::ranges::all_of(spec.layers, persists);
}

// A user's context gives persistent ones up, and they travel as well.
bool has_room_for_all(const CaseSpec& spec) {
  const bool has_contexts = std::ranges::any_of(spec.micros, [](const train::MicroSpec& micro) {
    return micro.gathers + micro.detour != 0 || moves_weight(micro);
  });
  const int all = train::elements_of_layers(spec) + (spec.experts != 0 ? 8 : 0);
  const int elements = has_contexts ? all : train::travelling_elements(spec);
  return spec.prefetch > 0 && spec.prefetch >= elements && has_room_to_live(spec);
}

}  // namespace

FetchJudge::FetchJudge(const CaseSpec& spec, const NameTable& names)
    : names_(names),
      is_judged_(follows_order(spec)),
      has_whole_parameters_(spec.stage < 3 && spec.is_tiled == 0),
      has_one_engine_(spec.engines == 1),
      has_retained_(retains_graphs(spec)),
      all_persist_(is_all_persistent(spec)),
      reuse_(judged_reuse(spec)),
      spec_(spec),
      keeps_used_(spec.reuse >= CaseSpec::kManyElements || has_room_for_all(spec)),
      has_room_(has_room_for_all(spec)),
      has_rests_(std::ranges::any_of(spec.micros, &train::MicroSpec::rests)),
      fills_bucket_(spec.prefetch > 0 && spec.live >= CaseSpec::kManyElements) {}

void FetchJudge::on_event(const HookEvent& event) {
  if (has_whole_parameters_ || all_persist_) see_forward(event);
  if (has_one_engine_) see_agreement(event);
  if (has_retained_) see_retained(event);
  if (reuse_ > 0) see_reuse(event);
  if (!is_judged_) {
    if (event.kind == EventKind::engine_call) follow_mode(names_.text(event.name));
    return;
  }
  switch (event.kind) {
    case EventKind::engine_call:
      return see_call(names_.text(event.name));
    case EventKind::zmod_fetch:
      return begin_fetch(event.name);
    case EventKind::zparam_gather_begin:
      return see_gather(event);
    case EventKind::zparam_gather_end:
      for (const NameId parameter : event.params) ahead_.erase(parameter);
      return;
    case EventKind::zparam_partition:
      if (is_in_pass_ && all_persist_ && finding_.empty())
        finding_ = fmt::format("{} is persistent and was given up within a pass",
                               names_.text(event.params.front()));
      given_up_since_.insert(event.params.begin(), event.params.end());
      if (is_followed() && keeps_used_) released_.insert(event.params.begin(), event.params.end());
      return;
    default:
      return;
  }
}

// What the first backward gave up was kept for the second.
void FetchJudge::see_retained(const HookEvent& event) {
  const std::string_view name = names_.text(event.name);
  switch (event.kind) {
    case EventKind::engine_call:
      if (name == "engine.forward" || name == "engine.step") {
        given_up_.clear();
        backwards_ = 0;
      }
      return;
    case EventKind::engine_return:
      if (name == "engine.forward") given_up_.clear();
      if (name == "engine.backward_epilogue") ++backwards_;
      return;
    case EventKind::zparam_partition:
      if (backwards_ == 0) given_up_.insert(event.params.begin(), event.params.end());
      return;
    case EventKind::gt_begin:
      ++graph_tasks_;
      return;
    case EventKind::gt_end:
      --graph_tasks_;
      return;
    case EventKind::zparam_gather_begin:
      gathering_ = event.params;
      return;
    case EventKind::coll_issue:
      if (!name.starts_with("all_gather") || graph_tasks_ == 0) return;
      if (backwards_ == 0 || !finding_.empty()) return;
      for (const NameId parameter : gathering_)
        if (given_up_.contains(parameter))
          finding_ = fmt::format("{} was given up though its graph is kept, and travels again",
                                 names_.text(parameter));
      return;
    default:
      return;
  }
}

// Ranks compare an order when it is new, and its modules once more when it is recorded.
void FetchJudge::see_agreement(const HookEvent& event) {
  const std::string_view name = names_.text(event.name);
  const bool is_call = event.kind == EventKind::engine_call;
  if (is_call && name == "coord.invalidate_trace") resets_ = 0;
  if (name == "coord.reset_step" && (is_call || event.kind == EventKind::engine_return)) {
    is_resetting_ = is_call;
    if (is_call) ++resets_;
    if (!is_call && event.is_exceptional()) --resets_;  // it was not compared to the end
  }
  const bool is_known = resets_ > 2 && is_resetting_ && event.kind == EventKind::coll_issue;
  if (is_known && finding_.empty())
    finding_ = fmt::format("a {} about an order of modules that the ranks have compared", name);
}

// Below stage 3 a forward needs nothing from other ranks; in stage 3 what persists stays, whether
// it ends or fails.
void FetchJudge::see_forward(const HookEvent& event) {
  const bool is_call = event.kind == EventKind::engine_call;
  if (is_call || event.kind == EventKind::engine_return) {
    if (names_.text(event.name) == "engine.forward") is_in_forward_ = is_call;
  } else if (is_in_forward_ && finding_.empty()) {
    if (has_whole_parameters_ && event.kind == EventKind::coll_issue)
      finding_ = fmt::format("a forward issues a {}", names_.text(event.name));
    if (all_persist_ && event.kind == EventKind::zparam_partition)
      finding_ = fmt::format("{} is persistent and was given up within a forward",
                             names_.text(event.params.front()));
  }
}

// What comes again within the distance of the configuration was not to be given up.
void FetchJudge::see_reuse(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::zmod_fetch:
      passed_elements_ += of_fetched_;
      of_fetched_ = elements_of_module(spec_, names_.text(event.name));
      return see_kept(event.name);
    case EventKind::zmod_release:
      if (is_judged_ && is_followed()) ended_at_[event.name] = passed_elements_ + of_fetched_;
      return;
    case EventKind::zparam_partition:
      for (const NameId parameter : event.params) {
        given_up_at_[parameter] = passed_elements_ + of_fetched_;
        std::erase_if(ended_at_, [&](const auto& ended) {
          return names_.text(parameter).starts_with(names_.text(ended.first)) &&
                 !is_persistent_parameter(spec_, names_.text(parameter));
        });
      }
      return;
    case EventKind::zparam_gather_begin:
      if (!is_followed()) return;
      for (const NameId parameter : event.params) {
        const auto at = given_up_at_.find(parameter);
        if (at != given_up_at_.end() && passed_elements_ - at->second < reuse_ && finding_.empty())
          finding_ = fmt::format("{} was given up and is gathered again {} elements later",
                                 names_.text(parameter), passed_elements_ - at->second);
      }
      return;
    default:
      return;
  }
}

// And what comes later than that was to be given up.
void FetchJudge::see_kept(NameId module) {
  const auto at = ended_at_.find(module);
  if (at == ended_at_.end()) return;
  const std::int64_t distance = passed_elements_ - at->second;
  ended_at_.erase(at);
  if (of_fetched_ == 0 || distance < reuse_ || !has_travelling(module)) return;
  if (kept_finding_.empty())
    kept_finding_ = fmt::format("{} stays whole and is used again {} elements later",
                                names_.text(module), distance);
}

bool FetchJudge::has_travelling(NameId module) const {
  const auto travels = [&](const char* kind) {
    const std::string name = fmt::format("{}.{}", names_.text(module), kind);
    return !names_.find(name).is_none() && !is_persistent_parameter(spec_, name);
  };
  return travels("weight") || travels(CaseSpec::kTwin) || travels("bias");
}

void FetchJudge::see_call(std::string_view method) {
  if (method == "engine.step" && !is_recording_ && !has_rests_ && finding_.empty())
    finding_ = "a window without an order of modules, so that nothing can be gathered ahead";
  follow_mode(method);
}

void FetchJudge::follow_mode(std::string_view method) {
  constexpr std::array<std::string_view, 6> kEnds = {"engine.backward_epilogue",
                                                     "engine.step",
                                                     "engine.zero_grad",
                                                     "z3.gathered_parameters",
                                                     "engine.coalesce_grad_reduction",
                                                     "coord.release_backward_leftovers"};
  if (method == "coord.reset_step") {
    mode_ = mode_ == Mode::invalid ? Mode::record : Mode::complete;
    is_in_pass_ = is_recording_ = true;
    is_begun_ = false;
  } else if (method == "coord.invalidate_trace") {
    mode_ = Mode::invalid;
  } else if (std::ranges::find(kEnds, method) != kEnds.end()) {
    is_in_pass_ = false;
  } else {
    return;
  }
  ahead_elements_ = spec_.prefetch;  // of no fetch before
  released_.clear();
  given_up_at_.clear();
  ended_at_.clear();
  ahead_.clear();
}

void FetchJudge::begin_fetch(NameId module) {
  fetched_ = module;
  last_ahead_elements_ = std::exchange(ahead_elements_, 0);
  given_up_before_ = std::exchange(given_up_since_, {});
}

// Ahead of its use goes what the order has next, until that fills the bucket.
bool FetchJudge::is_late(NameId parameter) const {
  return fills_bucket_ && last_ahead_elements_ < spec_.prefetch &&
         !given_up_before_.contains(parameter) &&
         elements_of_parameter(spec_, names_.text(parameter)) > 0;
}

bool FetchJudge::is_of_fetched_module(NameId parameter) const {
  if (fetched_.is_none()) return false;
  const std::string_view name = names_.text(parameter);
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && names_.text(fetched_).ends_with(name.substr(0, dot));
}

void FetchJudge::see_gather(const HookEvent& event) {
  if (!is_followed()) return;
  for (const NameId parameter : event.params) {
    if (!finding_.empty()) return;
    const bool is_own = is_of_fetched_module(parameter);
    const auto later =
        std::ranges::find_if_not(ahead_, [&](NameId other) { return is_of_fetched_module(other); });
    if (released_.contains(parameter))
      finding_ = fmt::format("{} was given up and is gathered again for a use of the same pass",
                             names_.text(parameter));
    else if (is_own && later != ahead_.end())
      finding_ = fmt::format("{} is gathered when it is needed, and {} for later was on its way",
                             names_.text(parameter), names_.text(*later));
    else if (is_begun_ && has_room_)
      finding_ = fmt::format("{} is gathered late in a pass, and there was room for it before",
                             names_.text(parameter));
    else if (is_late(parameter))
      finding_ = fmt::format(
          "{} is gathered by the fetch of {}, and the one before had room for it: it gathered {} "
          "of {} elements ahead",
          names_.text(parameter), names_.text(fetched_), last_ahead_elements_, spec_.prefetch);
    if (is_own) continue;
    ahead_.insert(parameter);
    ahead_elements_ += elements_of_parameter(spec_, names_.text(parameter));
  }
  is_begun_ = true;
}

}  // namespace zeroproof::mutation
