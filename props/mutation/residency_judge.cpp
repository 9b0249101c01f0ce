#include "props/mutation/residency_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "props/mutation/case_parameters.h"
#include "props/train/case_detours.h"

namespace zeroproof::mutation {
namespace {

using train::CaseSpec;

// Every module runs once in a forward and once in its backward, but for recomputes.
bool runs_once(const CaseSpec& spec) {
  const auto is_used_again = [&](const train::CallSpec& call) { return is_shared(spec, call); };
  const auto leaves = [](const train::MicroSpec& micro) {
    return micro.outstanding != 0 || has_abort(micro) || micro.throws != 0 ||
           micro.has_bypass + micro.past_engine != 0 || micro.idle_forward >= 3 ||
           micro.overflow + micro.lost_overflow != 0 || micro.registers != 0 ||
           gathers_while_running(micro);
  };
  return spec.engines == 1 && spec.granularity == 0 && spec.heads == 1 && spec.is_tiled == 0 &&
         spec.reads == 0 && has_layers_alone(spec) &&
         std::ranges::none_of(spec.calls, is_used_again) &&
         std::ranges::none_of(spec.micros, leaves);
}

bool runs_in_order(const CaseSpec& spec) {
  return runs_once(spec) && !has_checkpoints(spec);
}

// Modules use their own weights alone, without a recompute, and no backward fails.
bool uses_own_weights(const CaseSpec& spec) {
  const auto leaves = [](const train::MicroSpec& micro) {
    return micro.outstanding != 0 || has_abort(micro) || micro.throws != 0 ||
           micro.idle_forward >= 3 || micro.looks != 0 || micro.misuse != 0 ||
           micro.registers != 0 || gathers_while_running(micro);
  };
  // Two backwards of a module that overlap are one to this judge.
  const auto overlaps = [&](const train::MicroSpec& micro) {
    const bool is_cut = micro.overflow + micro.lost_overflow != 0 &&
                        std::ranges::any_of(spec.calls, [&](const train::CallSpec& call) {
                          return is_shared(spec, call);
                        });
    return is_cut || static_cast<train::Bypass>(micro.has_bypass) == train::Bypass::layer;
  };
  return spec.engines == 1 && spec.granularity == 0 && spec.reads == 0 && spec.returns == 0 &&
         has_layers_alone(spec) && !has_checkpoints(spec) &&
         std::ranges::none_of(spec.micros, leaves) && std::ranges::none_of(spec.micros, overlaps);
}

// Nothing is gathered ahead of a backward where a forward fails.
bool fails_without_gradients(const CaseSpec& spec) {
  return std::ranges::all_of(spec.micros, [](const train::MicroSpec& micro) {
    const auto shortage = static_cast<train::Shortage>(micro.shortage);
    const bool runs_short = shortage == train::Shortage::forward ||
                            (shortage == train::Shortage::gathers && runs_in_context(micro));
    return (micro.throws == 0 || micro.throws_no_grad != 0) && !runs_short;
  });
}

// What a recompute reads past its layer is gathered for a module.
bool reads_in_recompute(const CaseSpec& spec) {
  return spec.reads + spec.returns != 0 && (has_checkpoints(spec) || spec.tile_wrap != 0);
}

// A module's backward ends with the gradient of its inputs, so one of them has to need one.
// `spares_frozen`: but for modules without a backward.
bool ends_every_backward(const CaseSpec& spec, bool spares_frozen) {
  const auto ends = [&](const train::LayerSpec& layer) {
    const bool has_none = spares_frozen && layer.is_frozen == 1;
    return layer.is_linked != 0 || layer.is_raw != 0 || has_none;
  };
  return spec.input_grad != 0 && std::ranges::all_of(spec.layers, ends);
}

// Every call is in a checkpoint without a graph task of its own, and leads to the one before.
bool recomputes_in_order(const CaseSpec& spec) {
  const auto is_linked = [](const train::LayerSpec& layer) { return layer.is_linked != 0; };
  const auto is_recomputed = [](const train::CallSpec& call) {
    return static_cast<train::Wrap>(call.wrap) == train::Wrap::non_reentrant;
  };
  return runs_once(spec) && spec.returns == 0 && std::ranges::all_of(spec.layers, is_linked) &&
         std::ranges::all_of(spec.calls, is_recomputed);
}

std::vector<int> blocks_of(const CaseSpec& spec) {
  std::vector<int> blocks(spec.layers.size(), 0);
  int block = 0;
  for (const train::CallSpec& call : spec.calls)
    blocks[static_cast<std::size_t>(call.layer)] = call.is_joined != 0 ? block : ++block;
  return blocks;
}

// Nobody but its module uses a parameter.
bool has_sole_users(const CaseSpec& spec) {
  return spec.reads == 0 && spec.returns == 0 &&
         std::ranges::none_of(spec.micros,
                              [](const train::MicroSpec& micro) { return micro.registers != 0; });
}

}  // namespace

bool gathers_in_middle(const CaseSpec& spec) {
  return std::ranges::any_of(spec.micros, train::gathers_while_running);
}

namespace {

// The same, and calls of the engine inside a context of its own.
bool calls_in_context(const CaseSpec& spec) {
  return gathers_in_middle(spec) || std::ranges::any_of(spec.micros, [](const auto& micro) {
           return micro.detour != 0 && place_of(micro) == train::DetourPlace::context;
         });
}

}  // namespace

ResidencyJudge::ResidencyJudge(const CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      gives_all_back_(spec.reuse == 0 && spec.prefetch == 0 && spec.heads == 1 &&
                      spec.is_tiled == 0 && !gathers_in_middle(spec)),
      is_plain_(runs_in_order(spec)),
      uses_in_modules_(gives_all_back_ && uses_own_weights(spec)),
      ends_modules_(is_plain_ && ends_every_backward(spec, false)),
      judges_failed_(fails_without_gradients(spec)),
      judges_operations_(!reads_in_recompute(spec) && !gathers_in_middle(spec)),
      judges_recomputed_(gives_all_back_ && runs_once(spec) && has_checkpoints(spec) &&
                         spec.returns == 0 && ends_every_backward(spec, true)),
      judges_abandoned_(has_sole_users(spec)),
      blocks_(gives_all_back_ && recomputes_in_order(spec) ? blocks_of(spec) : std::vector<int>()),
      calls_in_contexts_(calls_in_context(spec)) {}

void ResidencyJudge::on_event(const HookEvent& event) {
  if (spec_.stage != 3 || spec_.skips_frames != 0) return;
  engine_ = event.engine;
  see_operation(event);
  switch (event.kind) {
    case EventKind::engine_call:
      return see_call(event);
    case EventKind::engine_return:
      return see_return(event);
    case EventKind::ft_pop:
      if (--transforms_ == 0) is_behind_transform_ = true;
      return;
    case EventKind::ft_push:
      ++transforms_;
      return;
    case EventKind::gt_end:
      if (event.is_exceptional()) failed_ = {EngineId{0}, EngineId{1}};
      return;
    case EventKind::zmod_fetch:
      judge_transform();  // of a module that the user calls past the engine
      judge_released();
      if (!event.is_forward) judge_functions();
      if (!event.is_forward) judge_blocks(event.name);
      if (!event.is_forward) backwards_.insert(event.name);
      return;
    case EventKind::zmod_release:
      judge_released();
      if (!event.is_forward) judge_end(event.name);
      if (event.is_forward && !is_ending_ && event.graph_task.is_none())
        abandoned_.insert(event.name);
      return see_release(event);
    case EventKind::zparam_gather_begin:
      begun_.insert(event.params.begin(), event.params.end());
      return;
    case EventKind::zparam_gather_end:
      resident_.insert(event.params.begin(), event.params.end());
      known_.insert(event.params.begin(), event.params.end());
      return;
    case EventKind::zparam_partition:
      for (const NameId parameter : event.params) {
        resident_.erase(parameter);
        begun_.erase(parameter);
      }
      return;
    case EventKind::mark:
      if (names_.text(event.name) == "gather_abandoned") begun_.erase(event.param);
      return;
    default:
      return;
  }
}

// An operation in a backward that gathers for itself, in no call of the engine, gives up what it
// gathered before anything else happens.
void ResidencyJudge::see_operation(const HookEvent& event) {
  const bool is_call = event.kind == EventKind::engine_call;
  if ((is_call || event.kind == EventKind::engine_return) &&
      names_.text(event.name).starts_with("z3."))
    calls_ += is_call ? 1 : -1;
  if (event.kind == EventKind::zparam_partition)
    for (const NameId parameter : event.params) of_operation_.erase(parameter);
  const bool begins = event.kind == EventKind::zparam_gather_begin;
  const bool is_over = begins || event.kind == EventKind::zmod_fetch ||
                       event.kind == EventKind::zmod_release || event.kind == EventKind::gt_end;
  if (!is_over) return;
  for (const NameId parameter : of_operation_)
    if (kept_finding_.empty())
      kept_finding_ = fmt::format("{} stays whole behind the operation that gathered it",
                                  names_.text(parameter));
  of_operation_.clear();
  if (begins && calls_ == 0 && !event.graph_task.is_none() && judges_operations_)
    of_operation_.insert(event.params.begin(), event.params.end());
}

void ResidencyJudge::judge_transform() {
  if (std::exchange(is_behind_transform_, false) && !calls_in_contexts_)
    judge_all_given_back("behind a transform");
}

void ResidencyJudge::see_call(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  if (method == "coord.release_backward_leftovers") {
    judge_leftovers();
    judge_recomputed();
  }
  if (method == "z3.post_forward") is_ending_ = true;
  if (method == "engine.forward") abandoned_.clear();
  if (!method.starts_with("engine.")) return;
  judge_transform();
  // In the middle of a backward a step is refused, and an inner one that failed gives back later.
  const bool is_named =
      method == "engine.forward" || method == "engine.zero_grad" || method == "engine.step";
  const bool begins = is_named && event.graph_task.is_none();
  if (begins && failed_.erase(event.engine) > 0 && !calls_in_contexts_)
    judge_all_given_back("after a backward that failed");
  if (begins) backwards_.clear();
}

void ResidencyJudge::see_return(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  if (method == "z3.post_forward") is_ending_ = false;
  if (method == "engine.backward_epilogue" && event.is_exceptional()) failed_.insert(event.engine);
  if (method == "engine.forward" && event.is_exceptional() && judges_abandoned_) judge_abandoned();
  if (method == "engine.forward") {
    judge_released();
    if (gives_all_back_ && !event.is_exceptional()) judge_all_given_back("after a forward");
    if (judges_failed_ && event.is_exceptional())
      judge_all_given_back("after a forward without gradients that failed");
  }
  if (method == "z3.step") judge_persistent();
}

void ResidencyJudge::see_release(const HookEvent& event) {
  if (!gives_all_back_ || !is_plain_) return;
  const std::string_view module = names_.text(event.name);
  for (const NameId parameter : resident_) {
    const std::string_view name = names_.text(parameter);
    const std::size_t dot = name.rfind('.');
    if (dot != std::string_view::npos && module.ends_with(name.substr(0, dot)))
      released_.insert(parameter);
  }
}

void ResidencyJudge::judge_released() {
  for (const NameId parameter : released_)
    if (resident_.contains(parameter) && !may_stay(parameter) && kept_finding_.empty())
      kept_finding_ =
          fmt::format("{} stays whole behind the module that gathered it", names_.text(parameter));
  released_.clear();
}

// The epilogue finds nothing to clean up.
void ResidencyJudge::judge_leftovers() {
  judge_released();
  judge_functions();
  for (const NameId module : backwards_)
    if (ends_modules_ && kept_finding_.empty())
      kept_finding_ =
          fmt::format("the backward of {} has no end before the epilogue's", names_.text(module));
  backwards_.clear();
}

// A recompute leaves to the module around it what it gathered, and the end of that is the end.
void ResidencyJudge::judge_recomputed() {
  if (!judges_recomputed_ || !kept_finding_.empty()) return;
  for (const NameId parameter : resident_)
    if (!may_stay(parameter))
      kept_finding_ = fmt::format("{} stays whole behind the modules whose recompute gathered it",
                                  names_.text(parameter));
}

// What is frozen in a later checkpoint went with the backward of the modules there.
void ResidencyJudge::judge_blocks(NameId module) {
  const std::optional<std::size_t> layer = layer_of_name(names_.text(module));
  if (blocks_.empty() || !layer || !kept_finding_.empty()) return;
  for (const NameId parameter : resident_) {
    const std::optional<std::size_t> other = layer_of_name(names_.text(parameter));
    if (other && blocks_[*other] > blocks_[*layer] && spec_.layers[*other].is_frozen != 0 &&
        !may_stay(parameter))
      kept_finding_ = fmt::format("{} stays whole behind the checkpoint that it was recomputed in",
                                  names_.text(parameter));
  }
}

// An exception ends a module, too.
void ResidencyJudge::judge_abandoned() {
  for (const NameId parameter : begun_) {
    const std::string_view name = names_.text(parameter);
    const std::string_view owner = name.substr(0, name.rfind('.'));
    const bool is_left = std::ranges::any_of(
        abandoned_, [&](NameId module) { return names_.text(module) == owner; });
    if (is_left && !may_stay(parameter) && kept_finding_.empty())
      kept_finding_ = fmt::format("{} stays whole behind an exception in its module", name);
  }
}

// A backward that has more than one end was not over at the first.
void ResidencyJudge::judge_end(NameId module) {
  if (backwards_.erase(module) == 0 && ends_modules_ && given_finding_.empty())
    given_finding_ = fmt::format("the backward of {} ends twice", names_.text(module));
}

// What an operation gathered for itself in backward, no module's is under way for.
void ResidencyJudge::judge_functions() {
  if (!uses_in_modules_) return;
  const auto is_needed = [&](NameId parameter) {
    const std::string_view name = names_.text(parameter);
    const std::string_view owner = name.substr(0, name.rfind('.'));
    return std::ranges::any_of(backwards_,
                               [&](NameId module) { return names_.text(module).ends_with(owner); });
  };
  for (const NameId parameter : resident_)
    if (!may_stay(parameter) && !is_needed(parameter) && kept_finding_.empty())
      kept_finding_ = fmt::format("{} stays whole in a backward, and no module of it is under way",
                                  names_.text(parameter));
}

// The step gathers what it updated and what has to stay.
void ResidencyJudge::judge_persistent() {
  for (const NameId parameter : known_)
    if (is_own(parameter) && is_persistent_parameter(spec_, names_.text(parameter)) &&
        !resident_.contains(parameter) && given_finding_.empty())
      given_finding_ =
          fmt::format("{} is persistent and not there after a step", names_.text(parameter));
}

void ResidencyJudge::judge_all_given_back(std::string_view when) {
  for (const NameId parameter : begun_)  // of some the end has not come
    if (is_own(parameter) && !may_stay(parameter) && kept_finding_.empty())
      kept_finding_ = fmt::format("{} is gathered {}", names_.text(parameter), when);
}

bool ResidencyJudge::may_stay(NameId parameter) const {
  return may_stay_whole(spec_, names_.text(parameter));
}

bool ResidencyJudge::is_own(NameId parameter) const {
  return names_.text(parameter).starts_with("e1.") == (engine_.value == 1);
}

}  // namespace zeroproof::mutation
