#include "zeroproof/internal/props/method.h"

#include <algorithm>
#include <array>
#include <utility>

namespace zeroproof {
namespace {

constexpr std::array<std::pair<std::string_view, Method>, 43> kMethods = {{
    {"engine.forward", Method::forward},
    {"engine.backward", Method::backward},
    {"engine.backward_prologue", Method::prologue},
    {"engine.backward_prologue_per_tensor", Method::output_hook},
    {"grad_hook", Method::grad_hook},
    {"engine.backward_post_hook", Method::post_hook},
    {"engine.backward_epilogue", Method::epilogue},
    {"engine.step", Method::step},
    {"engine.take_model_step", Method::model_step},
    {"engine.zero_grad", Method::zero_grad},
    {"z12.zero_grad", Method::zero_grad},
    {"z3.zero_grad", Method::zero_grad},
    {"bf16.zero_grad", Method::zero_grad},
    {"z12.independent_gradient_partition_epilogue", Method::grad_epilogue_12},
    {"z3.independent_gradient_partition_epilogue", Method::grad_epilogue_3},
    {"z12.finalize_gradient_accumulation_boundary", Method::finalize_window},
    {"z12.process_gradients", Method::process_gradients},
    {"z3.pre_forward", Method::pre_forward},
    {"z3.post_forward", Method::post_forward},
    {"reset_for_new_step", Method::reset},
    {"enter_backward", Method::enter},
    {"exit_backward", Method::exit},
    {"queue_post_backward_callback", Method::queue},
    {"should_refresh_expected_hook_count", Method::refresh},
    {"reenter_backward_if_needed", Method::reenter},
    {"update_hook_state_and_maybe_run_epilogue", Method::update},
    {"run_grad_acc_post_hooks", Method::run_post},
    {"z3.pre_backward", Method::pre_backward},
    {"z3.post_backward", Method::post_backward},
    {"coord.reset_step", Method::reset_trace},
    {"coord.invalidate_trace", Method::invalidate_trace},
    {"coord.release_backward_leftovers", Method::release_leftovers},
    {"coord.release_and_reset_all", Method::release_all},
    {"z3.partition_grads", Method::partition_grads},
    {"z3.gathered_parameters", Method::gathered_parameters},
    {"engine.coalesce_grad_reduction", Method::coalesce},
    {"fallback.gather", Method::fallback_gather},
    {"fallback.claim", Method::fallback_claim},
    {"fallback.start", Method::fallback_start},
    {"fallback.drop", Method::fallback_drop},
    {"fallback.release", Method::fallback_release},
    {"fallback.abandon", Method::fallback_abandon},
    {"fallback.guard", Method::fallback_guard},
}};

}  // namespace

Method method_of(std::string_view name) {
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(),
                                   [&](const auto& entry) { return entry.first == name; });
  return found == kMethods.end() ? Method::other : found->second;
}

Method MethodTable::of(NameId name) {
  if (name.is_none()) return Method::other;
  const auto index = static_cast<std::size_t>(name.value);
  if (index >= methods_.size()) methods_.resize(index + 1, -1);
  if (methods_[index] < 0)
    methods_[index] = static_cast<std::int16_t>(method_of(names_->text(name)));
  return static_cast<Method>(methods_[index]);
}

}  // namespace zeroproof
