#include "props/reference/gradients_due.h"
#include "props/reference/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace zeroproof::reference {
GradientsDue::GradientsDue(const Surroundings& around)
    : Part(around), boundary_(world_.config), capacity_(config().reduce_bucket_size) {
  if (config().stage < 3) capacity_ = std::min(capacity_, world_.trained_elements() + 1);
}

// 2.2; in stage 0 an observer of the model has hooks of its own.
bool GradientsDue::has_hooks() const {
  return config().stage != 1 || config().has_overlap_comm() || config().contiguous_gradients ||
         config().accumulation_dtype() != config().model_dtype();
}

void GradientsDue::on_event(const HookEvent& event) {
  if (event.transforms > 0) return;
  boundary_.follow(event, text(event.name));
  switch (event.kind) {
    case EventKind::gt_begin:
      if (scene_.graph_tasks() == 1) epilogues_ = 0;
      return;
    case EventKind::param_post_acc:
      return see_gradient(event);
    case EventKind::engine_call:
      return see_call(event);
    case EventKind::engine_return:
      return see_return(event);
    case EventKind::mark:
      return see_mark(event);
    case EventKind::bucket_add:
      return see_add(event);
    case EventKind::bucket_flush:
      return see_flush(event);
    default:
      return;
  }
}

void GradientsDue::see_gradient(const HookEvent& event) {
  const auto id = index_.parameter(event.param);
  if (!id || !parameter(*id).is_trained) return;
  undefined_.erase(*id);
  if (event.is_grad_none) {
    undefined_.insert(*id);
  } else {
    fresh_.insert(*id);
  }
}

// A recording need not say it of every gradient.
DType GradientsDue::dtype_of_bucket(const HookEvent& event, std::size_t id) const {
  return dtype_of(text(event.name)).value_or(parameter(id).wire);
}

void GradientsDue::see_call(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (method == calls::kHook) return see_hook(event);
  if (method == calls::kReduction) has_reduced_ = true;
  if (method == calls::kWholeReduction) {
    ++reductions_;
    judge_boundary(event, "the gradients of all parameters");
  }
  if (method == calls::kStep) reductions_ = 0;
  if (method != calls::kEpilogue) return;
  has_reduced_ = false;
  reductions_ = 0;
  if (!is_partitioning() || scene_.is_in(calls::kCoalesce)) collect();
}

// Stages 0 and 1, and every stage while coalescing: sums leave .grad as the epilogue begins (2.6).
void GradientsDue::collect() {
  local_.insert(fresh_.begin(), fresh_.end());
  fresh_.clear();
}

void GradientsDue::see_hook(const HookEvent& event) {
  const auto id = index_.parameter(event.param);
  if (!id || !parameter(*id).is_trained || parameter(*id).elements == 0) return;
  if (undefined_.contains(*id)) return;
  if (is_partitioning() && !scene_.is_in(calls::kCoalesce)) due_.insert(*id);
}

void GradientsDue::see_return(const HookEvent& event) {
  const std::string_view method = text(event.name);
  if (event.is_exceptional()) {
    is_lost_ = is_lost_ || method == calls::kHook || method == calls::kEpilogue ||
               method == calls::kCoalesce || method == calls::kStep;
    if (method == calls::kHook)
      if (const auto id = index_.parameter(event.param)) due_.erase(*id);
    return;
  }
  const bool owns_window = !config().managed_gradient_accumulation && !is_partitioning();
  const bool is_flush = method == calls::kLastFlush12 || method == calls::kLastFlush3;
  // What a block has reduced stays reduced where its body raises.
  if (is_flush && scene_.is_in(calls::kCoalesce)) joined_.clear();
  if (method == calls::kHook) return end_hook(event);
  if (method == calls::kEpilogue) judge_epilogue(event);
  if (method == calls::kReduction &&
      (is_partitioning() || (boundary_.is_boundary() && !owns_window)))
    judge_reduced(event);
  if (method == calls::kCoalesce) judge_reduced(event);
  std::set<std::size_t> sums = local_;
  sums.insert(loaded_.begin(), loaded_.end());
  if (method == calls::kModelStep || method == calls::kZeroGrad || method == calls::kLoad)
    drop_window();
  if (method == calls::kLoad) loaded_ = sums;  // a load that is refused does not change a sum
}

// What came again has joined its place in the bucket, without an event.
void GradientsDue::end_hook(const HookEvent& event) {
  const auto id = index_.parameter(event.param);
  if (!id || !is_held(*id)) return;
  due_.erase(*id);
  fresh_.erase(*id);
}

bool GradientsDue::is_held(std::size_t id) const {
  const auto holds = [&](const auto& one) {
    return std::ranges::find(one.second.held, id) != one.second.held.end();
  };
  return std::ranges::any_of(buckets_, holds);
}

void GradientsDue::judge_epilogue(const HookEvent& event) {
  const Unseen& unseen = world_.unseen;
  ++epilogues_;
  if (!unseen.marks_tiles && !unseen.differentiates_inside && world_.is_ours())
    ledger_.check(Rule::reduce_once, epilogues_ <= 1, event.lc,
                  "a backward has two epilogues, and reduces in both");
  if (has_reduced_ || scene_.is_in(calls::kCoalesce)) {
    if (has_reduced_ && scene_.is_in(calls::kNoSync))
      ledger_.find(Rule::bucket_boundary, event.lc, "gradients are reduced in no_sync");
    return;
  }
  if (config().stage < 2 && unseen.skips_sync) return ledger_.leave_collective(Freedom::no_sync);
  if (!scene_.is_in(calls::kNoSync) && world_.is_ours())
    ledger_.find(Rule::gradient_reduced, event.lc, "an epilogue reduces no gradients");
}

void GradientsDue::see_mark(const HookEvent& event) {
  const std::string_view label = text(event.name);
  if (label == "gradients_abandoned") drop_backward();
  if (label != "grad_not_ready") return;
  const auto id = index_.parameter(event.param);
  if (!id) return;
  due_.erase(*id);
  for (auto& [dtype, bucket] : buckets_)
    if (bucket.flushed >= 0) judge_room(event, bucket, *id);
}

bool GradientsDue::is_due(std::size_t id) const {
  if (!has_hooks() || loaded_.contains(id) || due_.contains(id) || local_.contains(id) ||
      fresh_.contains(id))
    return true;
  return parameter(id).is_of_leaf;  // zeros for what a rank did not use (3.7)
}

void GradientsDue::see_add(const HookEvent& event) {
  const auto id = index_.parameter(event.param);
  if (!id) return;
  const Parameter& row = parameter(*id);
  const DType dtype = dtype_of_bucket(event, *id);
  Bucket& bucket = buckets_[dtype];
  const std::string_view name = text(event.param);
  if (world_.has_sizes)
    ledger_.judge(
        Rule::gradient_dtype, dtype == row.wire && event.numel == row.elements, event.lc, [&] {
          return fmt::format("the gradient of {} travels as {} elements of {}; it has {} of {}",
                             name, event.numel, dtype_name(dtype), row.elements,
                             dtype_name(row.wire));
        });
  if (bucket.flushed >= 0) judge_room(event, bucket, *id);
  ledger_.judge(Rule::gradient_once, !is_held(*id), event.lc, [&] {
    return fmt::format("{} enters a bucket that has its gradient already", name);
  });
  ledger_.judge(Rule::gradient_due, row.is_trained && is_due(*id), event.lc, [&] {
    return fmt::format("{} enters a bucket, and no backward has accumulated its gradient", name);
  });
  bucket.held.push_back(*id);
  bucket.filled += event.numel;
  due_.erase(*id);
  if (local_.erase(*id) != 0) joined_.insert(*id);
  loaded_.erase(*id);
  fresh_.erase(*id);
}

// The last reductions of a backward, which need no reason.
bool GradientsDue::is_last_flush() const {
  return scene_.is_in(calls::kLastFlush3) || scene_.is_in(calls::kLastFlush12);
}

void GradientsDue::see_flush(const HookEvent& event) {
  std::vector<std::size_t> taken;
  for (const NameId param : event.params)
    if (const auto id = index_.parameter(param)) taken.push_back(*id);
  if (taken.empty()) return;
  Bucket& bucket = buckets_[dtype_of_bucket(event, taken.front())];
  std::vector<std::size_t> held = bucket.held;
  std::ranges::sort(taken);
  std::ranges::sort(held);
  if (!is_lost_)
    ledger_.judge(Rule::bucket_contents, taken == held && event.numel == bucket.filled, event.lc,
                  [&] {
                    return fmt::format(
                        "a reduction takes {} gradients of {} elements from a bucket that holds {} "
                        "of {}",
                        taken.size(), event.numel, held.size(), bucket.filled);
                  });
  const std::int64_t filled = bucket.filled;
  bucket = {};
  judge_boundary(event, "a bucket");
  if (is_last_flush() || is_lost_) return;
  bucket.flushed = filled;
  if (const auto next = index_.parameter(scene_.param_of(calls::kHook)))
    judge_room(event, bucket, *next);
}

// 2.16, step 2 of "Adding".
void GradientsDue::judge_room(const HookEvent& event, Bucket& bucket, std::size_t next) {
  const std::int64_t flushed = bucket.flushed;
  bucket.flushed = -1;
  if (!world_.has_sizes || !world_.has_configuration) return;
  ledger_.judge(Rule::bucket_room, flushed + parameter(next).elements > capacity_, event.lc, [&] {
    return fmt::format(
        "a bucket of {} elements was reduced with {} in it, though the {} of {} had room",
        capacity_, flushed, parameter(next).elements, parameter(next).name);
  });
}

// Stages 2 and 3 reduce in every backward; the last time in its epilogue.
void GradientsDue::judge_boundary(const HookEvent& event, std::string_view what) {
  const bool is_in_place = !is_last_flush() || scene_.is_in(calls::kEpilogue) ||
                           scene_.is_in(calls::kCoalesce) || scene_.is_in(calls::kStep);
  if (world_.is_ours())
    ledger_.judge(Rule::bucket_boundary, is_in_place, event.lc, [&] {
      return fmt::format("{} is reduced for the last time, outside an epilogue", what);
    });
  if (is_partitioning() || !world_.has_configuration) return;
  const bool owns_window = !config().managed_gradient_accumulation;
  const bool is_in_step = scene_.is_in(calls::kStep);
  if (scene_.is_in(calls::kCoalesce) && !scene_.is_in(calls::kEpilogue)) return;
  const bool is_right = owns_window ? is_in_step : boundary_.is_boundary();
  ledger_.judge(Rule::bucket_boundary, is_right, event.lc, [&] {
    return owns_window
               ? fmt::format("{} is reduced before the step, and the caller owns the window", what)
               : fmt::format("{} is reduced in micro-batch {}, and {} make a window", what,
                             boundary_.micro_steps(), config().gradient_accumulation_steps);
  });
  if (config().stage == 0)
    ledger_.check(Rule::reduce_once, reductions_ <= 1, event.lc,
                  "stage 0 reduces all gradients twice at one boundary");
}

void GradientsDue::judge_reduced(const HookEvent& event) {
  if (config().stage == 0) {
    if (world_.is_ours())
      ledger_.check(Rule::gradient_reduced, reductions_ > 0 || world_.trained_elements() == 0,
                    event.lc, "a boundary reduces no gradients");
    local_.clear();
    return;
  }
  std::set<std::size_t> left = due_;
  for (const auto& [dtype, bucket] : buckets_) left.insert(bucket.held.begin(), bucket.held.end());
  if (!is_partitioning() || scene_.innermost() == calls::kCoalesce)
    left.insert(local_.begin(), local_.end());
  std::erase_if(left, [&](std::size_t id) { return parameter(id).elements == 0; });
  if (!has_hooks()) ledger_.leave_collective(Freedom::no_hooks);
  if (!is_lost_ && has_hooks() && !world_.unseen.lacks_gradients)
    ledger_.judge(Rule::gradient_reduced, left.empty(), event.lc, [&] {
      return fmt::format("a reduction is over, and leaves the gradient of {}", list(left));
    });
  is_lost_ = false;
  buckets_.clear();
  due_.clear();
  local_.clear();
  joined_.clear();
  loaded_.clear();
  fresh_.clear();
}

// The sums of the backwards before it stay.
void GradientsDue::drop_backward() {
  local_.merge(joined_);
  joined_.clear();
  buckets_.clear();
  due_.clear();
  fresh_.clear();
  is_lost_ = false;
}

void GradientsDue::drop_window() {
  drop_backward();
  local_.clear();
  loaded_.clear();
}

std::string GradientsDue::list(const std::set<std::size_t>& ids) const {
  std::vector<std::string_view> names;
  for (const std::size_t id : ids) names.push_back(parameter(id).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace zeroproof::reference
