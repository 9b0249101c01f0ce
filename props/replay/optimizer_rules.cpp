#include "props/replay/optimizer_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "props/replay/moment.h"

namespace zeroproof {
namespace {

// A parameter that one micro-batch leaves out is no finding yet.
constexpr std::uint64_t kOptimizerStepsMin = 2;

}  // namespace

void OptimizerRules::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::param_post_acc:
      if (!event.is_grad_none) trained_.insert(event.param);
      break;
    case EventKind::opt_zero_grad:
      for (auto& [engine, window] : windows_) window.kept.clear();
      break;
    case EventKind::opt_step:
      on_step(event);
      break;
    case EventKind::mark:
      on_mark(event);
      break;
    default:
      break;
  }
}

void OptimizerRules::on_mark(const HookEvent& event) {
  constexpr std::string_view kKept = "gradients_kept:";
  const std::string_view label = names_.text(event.name);
  if (label.starts_with("compiled_module:") || label == "compiler.begin") is_compiled_ = true;
  if (label == "requires_grad:false") frozen_later_.emplace(names_.text(event.param));
  if (!label.starts_with(kKept)) return;
  Window& window = windows_[event.engine];
  window.kept = label.substr(kKept.size());
  if (window.kept_in_a_row == 0) window.kept_at = event;
}

void OptimizerRules::on_step(const HookEvent& event) {
  if (event.optimizer < 0) has_unnamed_step_ = true;
  Optimizer& optimizer = optimizers_[event.optimizer];
  if (optimizer.steps++ == 0) optimizer.first_step = event;
  optimizer.grads_max = std::max(optimizer.grads_max, event.grads);
  const auto known = windows_.find(event.engine);
  if (known == windows_.end()) return;
  Window& window = known->second;
  const std::string kept = std::exchange(window.kept, {});
  window.kept_in_a_row = kept.empty() ? 0 : window.kept_in_a_row + 1;
  if (window.kept_in_a_row < kOptimizerStepsMin) return;
  findings_.find(
      {.kind = "optimizer.gradients_kept",
       .what =
           fmt::format("{} gradients of one step were still there when the next backward began, "
                       "and no zero_grad came before the step: each step adds up the gradients "
                       "of all earlier ones",
                       kept),
       .rule = "a step uses the gradients of its own window: they are cleared between two steps",
       .look_at =
           "optimizer.zero_grad() in the loop: once a step, before the first backward of the "
           "next one"},
      event);
}

// Where gradients have no hook events, a parameter without one is no finding.
bool OptimizerRules::judges_gradients() const {
  return !is_compiled_ && !trained_.empty() &&
         std::all_of(facts_.wrappers.begin(), facts_.wrappers.end(),
                     [](const auto& entry) { return entry.second.is_understood; });
}

std::vector<std::string> OptimizerRules::unheld_params() const {
  std::set<std::string_view> held;
  for (const auto& [id, record] : facts_.optimizers)
    held.insert(record.params.begin(), record.params.end());
  std::vector<std::string> unheld;
  for (const NameId param : trained_) {
    const std::string_view name = names_.text(param);
    if (facts_.find(name) != nullptr && !held.contains(name)) unheld.emplace_back(name);
  }
  return unheld;
}

void OptimizerRules::finish(std::vector<Diagnosis>& out) {
  if (!facts_.optimizers.empty() && !has_unnamed_step_ && judges_gradients()) {
    find_other_parameters();
    find_untrained();
  }
  if (!optimizers_.empty()) find_vectors_only();
  findings_.take(out);
}

// Parameters that are replaced after the optimizer was made (dtype, device, wrapping) leave it with
// tensors that no graph leads to.
void OptimizerRules::find_other_parameters() {
  const std::vector<std::string> unheld = unheld_params();
  for (const auto& [id, optimizer] : optimizers_) {
    const auto record = facts_.optimizers.find(id);
    if (record == facts_.optimizers.end() || record->second.engine || optimizer.grads_max > 0)
      continue;
    const std::vector<std::string>& params = record->second.params;
    const bool trains = std::any_of(params.begin(), params.end(), [&](const std::string& param) {
      return trained_.contains(names_.find(param));
    });
    if (trains || unheld.empty()) continue;
    findings_.find(
        {.kind = "optimizer.holds_other_parameters",
         .what = fmt::format("{} {} stepped {} times, but not one of its {} parameters got a "
                             "gradient; {} get gradients and are in no optimizer",
                             record->second.class_name, id, optimizer.steps,
                             static_cast<std::int64_t>(params.size()) + record->second.unknown,
                             listed(unheld)),
         .rule = "an optimizer updates the tensors that it was given, which have to be those that "
                 "the graph leads to",
         .look_at = "what replaces parameters after the optimizer was made: .to(...), half(), "
                    "fully_shard, DeepSpeed, load_state_dict(assign=True). Make the optimizer last",
         .parameter = unheld.size() == 1 ? unheld.front() : std::string()},
        optimizer.first_step);
    return;
  }
  find_unheld(unheld);
}

// A model that no optimizer knows at all may be one that the job only computes with.
void OptimizerRules::find_unheld(const std::vector<std::string>& all_unheld) {
  std::set<std::int64_t> models;  // of which an optimizer holds a part
  for (const auto& [id, record] : facts_.optimizers)
    for (const std::string& param : record.params) models.insert(model_of(param));
  std::vector<std::string> unheld;
  for (const std::string& param : all_unheld)
    if (models.contains(model_of(param))) unheld.push_back(param);
  const auto steady = std::find_if(optimizers_.begin(), optimizers_.end(), [](const auto& entry) {
    return entry.second.steps >= kOptimizerStepsMin;
  });
  if (unheld.empty() || steady == optimizers_.end()) return;
  findings_.find(
      {.kind = "optimizer.trained_not_held",
       .gravity = Gravity::hazard,
       .what = fmt::format("{} get gradients, and no optimizer that stepped holds them",
                           listed(unheld)),
       .rule = "what gets a gradient is updated by an optimizer, or need not get one",
       .look_at = "the parameter groups of the optimizer; requires_grad_(False) where no "
                  "update is meant",
       .parameter = unheld.size() == 1 ? unheld.front() : std::string()},
      steady->second.first_step);
}

void OptimizerRules::find_untrained() {
  for (const auto& [id, optimizer] : optimizers_) {
    const auto record = facts_.optimizers.find(id);
    if (record == facts_.optimizers.end() || optimizer.steps < kOptimizerStepsMin) continue;
    std::vector<std::string> untrained;
    for (const std::string& param : record->second.params) {
      const ParamFact* fact = facts_.find(param);
      const bool is_trainable =
          fact != nullptr && fact->requires_grad && !frozen_later_.contains(param);
      if (is_trainable && !trained_.contains(names_.find(param))) untrained.push_back(param);
    }
    if (untrained.empty() || untrained.size() == record->second.params.size()) continue;
    // A gradient that the job computes and assigns itself (zero-bubble schedules) fires no hook.
    const std::size_t hooked = record->second.params.size() - untrained.size();
    if (optimizer.grads_max > static_cast<std::int64_t>(hooked)) continue;
    findings_.find(
        {.kind = "optimizer.never_trained",
         .gravity = Gravity::hazard,
         .what =
             fmt::format("{} of {} trainable parameters of {} {} got no gradient in {} steps: {}",
                         untrained.size(), record->second.params.size(), record->second.class_name,
                         id, optimizer.steps, listed(untrained)),
         .rule = "what an optimizer holds and may be trained gets a gradient",
         .look_at = "whether the loss depends on them: outputs that are left out, detach(), a "
                    "branch or expert that no step of the recording took",
         .parameter = untrained.size() == 1 ? untrained.front() : std::string()},
        optimizer.first_step);
  }
}

// Matrices that are all frozen while norms and biases are trained: a loop over the parameters with
// the wrong condition, or bias tuning.
void OptimizerRules::find_vectors_only() {
  std::map<std::int64_t, std::vector<std::string>> trainable;  // by model
  std::map<std::int64_t, std::uint64_t> frozen_matrices;
  std::set<std::int64_t> trains_matrices;
  for (const auto& [name, fact] : facts_.params) {
    const bool is_frozen = !fact.requires_grad || frozen_later_.contains(name);
    if (!is_frozen) trainable[fact.model].push_back(name);
    if (is_frozen && fact.dimensions > 1) ++frozen_matrices[fact.model];
    if (!is_frozen && fact.dimensions > 1) trains_matrices.insert(fact.model);
  }
  for (const auto& [model, names] : trainable) {
    if (trains_matrices.contains(model) || frozen_matrices[model] == 0) continue;
    findings_.find(
        {.kind = "model.only_vectors_trained",
         .gravity = Gravity::hazard,
         .what = fmt::format("of the model only {} are trained, all of them vectors; its {} "
                             "matrices are frozen",
                             listed(names), frozen_matrices[model]),
         .rule = "the parameters that are to be trained require a gradient",
         .look_at = "the loop that calls requires_grad_(False): does its condition mean what it "
                    "says?"},
        optimizers_.begin()->second.first_step);
  }
}

}  // namespace zeroproof
