#include "props/replay/deepspeed_signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "props/mark.h"
#include "props/replay/moment.h"

namespace zeroproof {
namespace {

constexpr std::size_t kPartitionedMax = 64;

// `"key":[1,2.0,...` or `"key":2`: the first number after the count of elements.
std::optional<double> state_number(std::string_view line, std::string_view key) {
  const std::string start = fmt::format("\"{}\":", key);
  std::size_t at = line.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  at += start.size();
  if (line.substr(at, 3) == "[1,") at += 3;
  double value = 0;
  const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// From #7665 to #8245 each output of the engine divides by the accumulation steps; later releases
// divide the loss, earlier ones too.
bool scales_outputs(std::string_view version) {
  std::array<int, 3> release = {0, 0, 0};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (int& number : release) {
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc()) return false;
    at = read.ptr == end ? end : read.ptr + 1;
  }
  return release >= std::array<int, 3>{0, 18, 3} && release < std::array<int, 3>{0, 19, 6};
}

}  // namespace

DeepSpeedSigns::DeepSpeedSigns(const NameTable& names, const HeaderRecord& header,
                               const OutermostBackward& backward)
    : names_(names), backward_(backward), findings_(names, 12), stage_(header.stage.value_or(-1)) {
  for (const auto& [key, value] : header.producer)
    if (key == "deepspeed" && value) scales_outputs_ = scales_outputs(*value);
}

void DeepSpeedSigns::on_event(const HookEvent& event, std::string_view line) {
  switch (event.kind) {
    case EventKind::engine_call:
      on_call(event);
      break;
    case EventKind::engine_return:
      on_return(event);
      break;
    case EventKind::param_post_acc:
      on_gradient(event);
      break;
    case EventKind::gt_begin:
      if (!backward_.begins()) break;
      ++backwards_;
      findings_.tell(event);
      find_shared_loss(event);
      break;
    case EventKind::module_fwd_pre:
      on_forward(event);
      break;
    case EventKind::mark:
      accumulation_ = mark_number(names_.text(event.name), "gradient_accumulation_steps")
                          .value_or(accumulation_);
      break;
    case EventKind::gt_end:
      on_task_end(event);
      break;
    case EventKind::zparam_partition:
      if (backward_.depth() == 0) break;
      if (!partition_lc_) partition_lc_ = event.lc;
      for (const NameId param : event.params)
        if (partitioned_.size() < kPartitionedMax) partitioned_.emplace_back(names_.text(param));
      break;
    case EventKind::exc:
      on_exception(event);
      break;
    case EventKind::opt_state:
      on_optimizer_state(event, line);
      break;
    default:
      break;
  }
}

void DeepSpeedSigns::on_call(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  if (method == "engine.forward" && event.graph_task.is_none() && event.transforms == 0) {
    backwards_ = 0;
    partitioned_.clear();
    partition_lc_.reset();
    findings_.begin_story(event);
    undefined_param_ = {};
  }
  if (method == "engine.forward" && open_forwards_++ == 0) ++windows_[event.engine].forwards;
  if (method == "engine.backward") ++windows_[event.engine].backwards;
  if (method == "engine.take_model_step") windows_[event.engine].has_updated = true;
  if (method == "grad_hook") open_hook_ = event.param;
  const bool is_telling = method == "engine.backward" || method == "engine.backward_epilogue";
  if (is_telling) findings_.tell(event);
}

void DeepSpeedSigns::on_gradient(const HookEvent& event) {
  undefined_param_ = event.is_grad_none ? event.param : NameId{};
}

void DeepSpeedSigns::on_return(const HookEvent& event) {
  const std::string_view method = names_.text(event.name);
  if (method == "engine.forward") {
    open_forwards_ = std::max(open_forwards_ - 1, 0);
    has_forward_ = true;
  }
  if (method == "engine.step") end_step(event);
  if (!event.is_exceptional()) {
    if (method == "grad_hook") open_hook_ = {};
    return;
  }
  const std::string_view type = names_.text(event.exception);
  if (method == "engine.backward_prologue") is_refused_ = true;
  if (method == "engine.forward" && event.transforms > 0) {
    findings_.find(
        {.kind = "zero3.transform_unsupported",
         .what = fmt::format("{} left engine.forward under a functorch transform", type),
         .rule = "P79 transform.inert: under a functorch transform the result equals the bare "
                 "module's",
         .look_at = "ZeRO-3 wraps modules in autograd Functions that have no vmap rule: run the "
                    "transform on engine.module with gathered parameters, or use stage 0 to 2"},
        event);
  }
}

void DeepSpeedSigns::on_task_end(const HookEvent& event) {
  if (!event.is_exceptional()) {
    undefined_param_ = {};
    return;
  }
  const std::string_view type = names_.text(event.exception);
  if (!undefined_param_.is_none()) {
    find_undefined(undefined_param_, type, event);
  } else if (stage_ == 3 && backwards_ > 1 && partition_lc_ && !is_refused_) {
    findings_.find(
        {.kind = "zero3.retained_graph_released",
         .what = fmt::format("backward number {} over the same forward failed by {}: the backward "
                             "before it had partitioned {}",
                             backwards_, type, listed(partitioned_)),
         .rule =
             "P62 residency: whenever a module computes, its parameters are AVAILABLE with full "
             "shape",
         .look_at = "several engine.backward calls over one forward (retain_graph): sum the losses "
                    "and call it once, or run a forward for each"},
        event);
  }
}

void DeepSpeedSigns::find_undefined(NameId hook, std::string_view type, const HookEvent& event) {
  const std::string param(names_.text(hook));
  findings_.find(
      {.kind = "hook.undefined_gradient",
       .what = fmt::format("the gradient hook of {} ran although {} got no gradient, and raised {}",
                           param, param, type),
       .rule = "autograd A3: post-accumulate hooks fire for undefined gradients too; a hook has to "
               "bear grad = None",
       .look_at =
           fmt::format("the Function that returns None for {}: return zeros instead, or use a "
                       "DeepSpeed that skips the hook",
                       param),
       .parameter = param},
      event);
}

// What upstream refuses, in its own words; and a hook that stumbled over a gradient that is None
// where the recording has no word of its own for that.
void DeepSpeedSigns::on_exception(const HookEvent& event) {
  const NameId hook = std::exchange(open_hook_, NameId{});
  const bool is_none =
      names_.text(event.message).find("'NoneType' object") != std::string_view::npos;
  if (!hook.is_none() && is_none && backward_.depth() == 0)
    find_undefined(hook, names_.text(event.name), event);
  if (!std::exchange(is_refused_, false)) return;
  findings_.find(
      {.kind = "refused_by_design",
       .gravity = Gravity::note,
       .what = fmt::format("DeepSpeed refused the backward before any gradient formed: {}",
                           names_.text(event.message)),
       .rule =
           "docs/spec/zero.md E1: loss.backward() needs ZeRO stage 1 to 3 and PyTorch's callback "
           "functions",
       .look_at = "engine.backward(loss) in place of loss.backward(), or a higher stage"},
      event);
}

void DeepSpeedSigns::on_optimizer_state(const HookEvent& event, std::string_view line) {
  const auto counted = state_number(line, "step");
  const auto steps = state_number(line, "gstep");
  const auto skipped = state_number(line, "skipped");
  if (!counted || !steps || *counted <= *steps - skipped.value_or(0)) return;
  findings_.find(
      {.kind = "optimizer.step_count_ahead",
       .gravity = Gravity::hazard,
       .what =
           fmt::format("the inner optimizer counts {} steps after {}: its bias correction is that "
                       "of a later step",
                       *counted, *steps - skipped.value_or(0)),
       .rule =
           "P61 step.counts_agree: all sub-groups have the same optimizer step count, the number "
           "of steps taken",
       .look_at =
           "optimizer state that is made by a real step on zero gradients (stage 0 in bf16): "
           "compare with stages 1 to 3, where the counter is right"},
      event);
}

// engine.step counts the micro-steps: several micro-batches with one call of it come to the
// boundary later than the caller believes.
void DeepSpeedSigns::end_step(const HookEvent& event) {
  const Window window = std::exchange(windows_[event.engine], {});
  const bool is_short = window.forwards > 1 && window.backwards > 1 && !window.has_updated;
  if (!is_short || accumulation_ < 2 || event.is_exceptional()) return;
  findings_.find(
      {.kind = "deepspeed.step_below_boundary",
       .gravity = Gravity::hazard,
       .what = fmt::format(
           "engine.step after {} micro-batches updated no parameter: it counts calls of "
           "itself, and {} of them make an accumulation boundary",
           window.backwards, accumulation_),
       .rule = "P55 step.at_boundary: a step updates exactly at the boundary",
       .look_at =
           "engine.step() after each micro-batch; or set_gradient_accumulation_boundary, and "
           "a gradient_accumulation_steps that is the caller's"},
      event);
}

void DeepSpeedSigns::on_forward(const HookEvent& event) {
  const bool is_past_engine = has_forward_ && open_forwards_ == 0 && backward_.depth() == 0;
  if (is_past_engine && module_past_engine_.empty()) module_past_engine_ = names_.text(event.name);
}

// A part of the model that a loss reaches past the engine's outputs: where those divide by the
// accumulation steps, this part's share of the gradient is not divided.
void DeepSpeedSigns::find_shared_loss(const HookEvent& event) {
  const std::string module = std::exchange(module_past_engine_, {});
  has_forward_ = false;
  if (module.empty() || !scales_outputs_ || accumulation_ < 2) return;
  findings_.find(
      {.kind = "deepspeed.loss_past_engine",
       .gravity = Gravity::hazard,
       .what = fmt::format("module {} ran outside engine.forward between a forward of the engine "
                           "and its backward: what the loss takes from it is not divided by the {} "
                           "accumulation steps",
                           module, accumulation_),
       .rule = "P19 grads.scaled_once: the accumulation steps divide every gradient exactly once",
       .look_at = "calls of engine.module or of parts of it for an auxiliary loss: return that "
                  "output from the engine's forward, divide the auxiliary loss yourself, or use "
                  "DeepSpeed 0.19.6 or later (#8245)"},
      event);
}

}  // namespace zeroproof
