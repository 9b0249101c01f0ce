#include "props/mutation/cost_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "props/mutation/case_parameters.h"

namespace zeroproof::mutation {
namespace {

constexpr std::int64_t kPaddingMax = 16;  // elements

std::int64_t trained_elements(const train::CaseSpec& spec) {
  std::int64_t elements = 0;
  for (const train::LayerSpec& layer : spec.layers)
    if (layer.is_frozen == 0) elements += layer.elements();
  return elements;
}

// One for all that is trained, which is more than its padding.
bool has_one_reduction(const train::CaseSpec& spec) {
  const auto is_part = [](const train::LayerSpec& layer) { return layer.is_weight_frozen != 0; };
  return spec.stage == 0 && spec.engines == 1 && spec.groups == 1 && has_layers_alone(spec) &&
         static_cast<train::Precision>(spec.precision) != train::Precision::autocast &&
         trained_elements(spec) > kPaddingMax && std::ranges::none_of(spec.layers, is_part);
}

// No engine is called in the middle of it, and none of its parts is an engine's whole forward.
bool has_one_epilogue(const train::CaseSpec& spec) {
  return spec.engines == 1 && spec.is_tiled == 0 &&
         std::ranges::none_of(spec.micros, [](const train::MicroSpec& micro) {
           return micro.interrupt + micro.wrapped != 0;
         });
}

std::string_view safe_dtype(const train::CaseSpec& spec) {
  if (static_cast<train::Precision>(spec.precision) != train::Precision::autocast) return {};
  return dtype_name(spec.has_grad_scaler != 0 ? DType::float16 : DType::bfloat16);
}

// None where several reductions share them.
std::int64_t judged_wire_item_bytes(const train::CaseSpec& spec) {
  return has_one_reduction(spec) ? item_bytes(train::cell_of(spec).config->communication_dtype())
                                 : 0;
}

}  // namespace

CostJudge::CostJudge(const train::CaseSpec& spec, const NameTable& names)
    : spec_(spec),
      names_(names),
      bucket_(std::min<std::int64_t>(spec.bucket, trained_elements(spec))),
      has_buckets_(spec.engines == 1 && spec.is_tiled == 0),
      wire_item_bytes_(judged_wire_item_bytes(spec)),
      wire_bytes_(trained_elements(spec) * wire_item_bytes_),
      has_one_graph_(std::ranges::none_of(
          spec.micros, [](const train::MicroSpec& micro) { return micro.outstanding != 0; })),
      safe_dtype_(safe_dtype(spec)),
      has_one_epilogue_(has_one_epilogue(spec)) {}

void CostJudge::on_event(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::gt_begin:
      if (event.parent_call < 0) tasks_ = counts_ = epilogues_ = 0;
      ++tasks_;
      return;
    case EventKind::mark:
      see_mark(event);
      if (!names_.text(event.name).starts_with("count_used_parameters")) return;
      if (++counts_ > tasks_ && count_finding_.empty())
        count_finding_ = fmt::format("{} queries for the expected hooks in {} phases of a backward",
                                     counts_, tasks_);
      return;
    case EventKind::bucket_flush:
      return see_flush(event);
    case EventKind::bucket_add:
      return see_add(event);
    case EventKind::engine_call:
      if (names_.text(event.name) == "z3.step") agreements_ = 0;
      return;
    case EventKind::coll_issue:
      see_wire(event);
      see_agreement(event);
      if (event.bytes == 0 && collective_finding_.empty() && !is_check(event))
        collective_finding_ = fmt::format("{} of no bytes", names_.text(event.name));
      return;
    case EventKind::zparam_gather_begin:  // its end may not have come
      resident_.insert(event.params.begin(), event.params.end());
      return;
    case EventKind::zparam_partition:
      for (const NameId param : event.params) resident_.erase(param);
      return;
    case EventKind::engine_return:
      if (names_.text(event.name) == "z3.step") agreements_ = -1;
      if (names_.text(event.name) == "engine.backward_epilogue" && !event.is_exceptional())
        see_epilogue(event.engine);
      if (!ends_reduction(names_.text(event.name)) || is_in_backward(event)) return;
      buckets_.clear();
      return;
    default:
      return;
  }
}

// What failed has left neither a gradient in a bucket nor a parameter on the way.
void CostJudge::see_mark(const HookEvent& event) {
  const std::string_view label = names_.text(event.name);
  if (label == "gather_abandoned") resident_.erase(event.param);
  if (label != "gradients_abandoned") return;
  buckets_.clear();
}

// Stage 0 reduces all gradients of a window at once, in the dtype of the wire. Beside them it
// agrees on numbers, which are less than that.
void CostJudge::see_wire(const HookEvent& event) {
  if (wire_item_bytes_ == 0 || !collective_finding_.empty()) return;
  if (names_.text(event.name) != "all_reduce" || event.bytes < wire_bytes_ / 4) return;
  if (event.bytes < wire_bytes_ || event.bytes > wire_bytes_ + kPaddingMax * wire_item_bytes_)
    collective_finding_ =
        fmt::format("all gradients travel in {} bytes, and have {} each on a wire of {}",
                    event.bytes, wire_item_bytes_, wire_bytes_);
}

// All ranks agree on whether gradients overflow, and on their norm.
void CostJudge::see_agreement(const HookEvent& event) {
  if (agreements_ < 0 || names_.text(event.name) != "all_reduce") return;
  const std::int64_t most = spec_.tensor > 1 ? 4 : 2;
  if (++agreements_ > most && collective_finding_.empty())
    collective_finding_ =
        fmt::format("a step asks all ranks {} times, and {} are enough", agreements_, most);
}

// Stage 3 tells the others an order of no modules.
bool CostJudge::is_check(const HookEvent& event) const {
  return names_.text(event.name) == "broadcast";
}

bool CostJudge::ends_reduction(std::string_view method) {
  return method == "engine.backward_epilogue" || method == "engine.step" ||
         method == "engine.zero_grad" || method == "engine.coalesce_grad_reduction";
}

// A step that is refused there; what is reduced goes on.
bool CostJudge::is_in_backward(const HookEvent& event) const {
  return names_.text(event.name) == "engine.step" && !event.graph_task.is_none();
}

// Persistent ones stay, and what a context of the user's holds.
void CostJudge::see_epilogue(EngineId engine) {
  if (++epilogues_ > 1 && has_one_epilogue_ && collective_finding_.empty())
    collective_finding_ = "a backward has two epilogues, and reduces in both";
  const auto spans = [](const train::MicroSpec& micro) { return micro.spans != 0; };
  if (std::ranges::any_of(spec_.micros, spans)) return;
  const auto is_own = [&](NameId param) {
    return names_.text(param).starts_with("e1.") == (engine.value == 1);
  };
  for (const NameId param : resident_)
    if (is_own(param) && !may_stay_whole(spec_, names_.text(param)) && resident_finding_.empty() &&
        (spec_.skips_frames == 0 || has_one_graph_))
      resident_finding_ =
          fmt::format("{} is gathered after the epilogue of a backward", names_.text(param));
}

// As many as were added, whatever the bucket says.
void CostJudge::see_flush(const HookEvent& event) {
  Bucket& bucket = buckets_[event.name];
  bucket = {.filled = 0, .flushed = bucket.filled};
}

// Under autocast a gradient travels as its module's class is safe, or as it is.
void CostJudge::see_dtype(const HookEvent& event) {
  const auto layer = layer_of_name(names_.text(event.param));
  if (safe_dtype_.empty() || !layer || !collective_finding_.empty()) return;
  const bool is_safe = spec_.is_unsafe == 0 && spec_.layers.at(*layer).is_raw == 0;
  const std::string_view dtype = is_safe ? safe_dtype_ : dtype_name(DType::float32);
  if (names_.text(event.name) != dtype)
    collective_finding_ = fmt::format("the gradient of {} travels in {}, and its wire has {}",
                                      names_.text(event.param), names_.text(event.name), dtype);
}

// What comes right behind a flush had no room left.
void CostJudge::see_add(const HookEvent& event) {
  see_dtype(event);
  Bucket& bucket = buckets_[event.name];
  if (bucket.flushed && has_buckets_ && *bucket.flushed + event.numel <= bucket_ &&
      collective_finding_.empty())
    collective_finding_ =
        fmt::format("a bucket of {} elements was reduced with {} in it, though {} had room",
                    bucket_, *bucket.flushed, names_.text(event.param));
  bucket.flushed.reset();
  bucket.filled += event.numel;
}

}  // namespace zeroproof::mutation
