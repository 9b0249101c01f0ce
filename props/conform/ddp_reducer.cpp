#include "props/conform/ddp_reducer.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "model/accumulate_grad.h"
#include "model/check.h"
#include "model/custom_function.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

std::vector<std::size_t> in_order_of_registration(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::set<const Node*> nodes_behind(const Tensor& output) {
  std::set<const Node*> seen;
  std::vector<const Node*> open;
  if (output.grad_fn()) open.push_back(output.grad_fn().get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Edge& edge : node->next_edges())
      if (edge.is_valid()) open.push_back(edge.node.get());
  }
  return seen;
}

}  // namespace

// One bucket for everything in the first iteration, unless unused parameters are looked for.
DdpReducer::DdpReducer(Autograd& autograd, TensorList parameters, const DdpOptions& options,
                       BucketHook on_bucket)
    : autograd_(autograd),
      parameters_(std::move(parameters)),
      options_(options),
      on_bucket_(std::move(on_bucket)),
      contents_(parameters_.size()),
      hooks_fired_(parameters_.size(), 0) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(gradient_edge(autograd_, parameters_[i]));
    handles_.push_back(
        accumulators_.back().node->register_hook([this, i](const TensorList&, const TensorList&) {
          on_accumulated(i);
          return TensorList{};
        }));
  }
  const bool is_split = options_.finds_unused && !options_.is_static_graph;
  buckets_ = assign_buckets(in_order_of_registration(parameters_.size()),
                            is_split ? options_.bucket_bytes_cap : kNoCap);
  std::reverse(buckets_.begin(), buckets_.end());
}

DdpReducer::~DdpReducer() {
  for (HookHandle& handle : handles_) handle.remove();
}

std::int64_t DdpReducer::bytes_of(std::size_t parameter) const {
  const Tensor& tensor = parameters_[parameter];
  constexpr std::int64_t kBytes[] = {8, 4, 2, 2};  // in the order of DType
  return tensor.numel() * kBytes[static_cast<std::size_t>(tensor.dtype())];
}

// A bucket is full once it has reached the cap; one dtype each is all that this world has.
std::vector<DdpReducer::Bucket> DdpReducer::assign_buckets(const std::vector<std::size_t>& order,
                                                           std::int64_t cap) const {
  std::vector<Bucket> buckets;
  std::int64_t bytes = cap;
  for (const std::size_t parameter : order) {
    if (bytes >= cap) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().parameters.push_back(parameter);
    bytes += bytes_of(parameter);
  }
  return buckets;
}

bool DdpReducer::will_rebuild() const {
  return !has_rebuilt_ && (options_.is_static_graph || !options_.finds_unused);
}

// Once, in the order in which the gradients of the iteration before became ready; the unused
// parameters of a static graph come last.
void DdpReducer::rebuild_buckets() {
  if (!will_rebuild() || order_.empty()) return;
  order_.insert(order_.end(), unused_.begin(), unused_.end());
  ZP_CHECK(order_.size() == parameters_.size(), "a finished iteration left parameters out");
  buckets_ = assign_buckets(order_, options_.bucket_bytes_cap);
  has_rebuilt_ = true;
}

Tensor DdpReducer::forward(const nn::Module& module, const Tensor& input) {
  const bool is_synced = autograd_.is_grad_enabled() && is_sync_on_;
  if (autograd_.is_grad_enabled()) {
    if (is_synced && needs_finalize_)
      throw AutogradError(
          options_.needs_manual_finalization
              ? "Expected to have finalized the prior backward pass before starting a new one."
              : "Expected to have finished reduction in the prior iteration before starting a new "
                "one.");
    if (!needs_finalize_) rebuild_buckets();
  }
  Tensor output = module(autograd_, input);
  expects_hooks_ = is_synced;
  if (!is_synced) return output;
  prepare_for_backward(output);
  const bool is_first_static = options_.is_static_graph && !has_queued_late_;
  return options_.finds_unused || is_first_static ? sink(output) : output;
}

void DdpReducer::prepare_for_backward(const Tensor& output) {
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) bucket.pending = bucket.parameters.size();
  is_ready_.assign(parameters_.size(), false);
  is_used_.assign(parameters_.size(), false);
  hooks_left_ = hooks_fired_;
  if (options_.finds_unused && !options_.is_static_graph) {
    unused_.clear();
    const std::set<const Node*> reached = nodes_behind(output);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (!reached.contains(accumulators_[i].node.get())) unused_.push_back(i);
  }
  has_marked_unused_ = unused_.empty();
}

// An identity on the output. In the first backward of a static graph it asks for one reduction of
// everything at the end of its task.
Tensor DdpReducer::sink(const Tensor& output) {
  const CustomFunction identity = {
      .name = "_DDPSinkBackward",
      .forward =
          [this](FunctionContext& ctx, const TensorList& inputs) {
            ctx.set_materialize_grads(false);
            return TensorList{clone(autograd_, inputs[0])};
          },
      .backward =
          [this](FunctionContext&, const TensorList& grads) {
            if (options_.is_static_graph && !std::exchange(has_queued_late_, true))
              autograd_.queue_callback([this] { launch_all_late(); });
            return grads;
          }};
  return apply_function(autograd_, identity, {output})[0];
}

void DdpReducer::on_accumulated(std::size_t parameter) {
  if (!expects_hooks_) return;
  is_used_[parameter] = true;
  if (options_.is_static_graph) return on_static_accumulated(parameter);
  mark_unused();
  mark_ready_by_hook(parameter);
}

// Only what a hook made ready counts for the order of the buckets.
void DdpReducer::mark_ready_by_hook(std::size_t parameter) {
  if (will_rebuild()) order_.push_back(parameter);
  mark_ready(parameter);
}

// A static graph may use a parameter in several tasks (rule A7): it is ready when its hook has
// fired as often as in the first backward.
void DdpReducer::on_static_accumulated(std::size_t parameter) {
  if (!has_counted_) {
    ++hooks_fired_[parameter];
    return;
  }
  mark_unused();
  if (hooks_left_[parameter] == 0)
    throw AutogradError("Your training graph has changed in this iteration.");
  if (--hooks_left_[parameter] == 0) mark_ready_by_hook(parameter);
}

void DdpReducer::mark_unused() {
  if (std::exchange(has_marked_unused_, true)) return;
  for (const std::size_t unused : unused_) mark_ready(unused);
}

void DdpReducer::mark_ready(std::size_t parameter) {
  if (is_ready_[parameter]) throw AutogradError("Expected to mark a variable ready only once.");
  is_ready_[parameter] = true;
  needs_finalize_ = true;
  copy_to_bucket(parameter);
  for (Bucket& bucket : buckets_) {
    const auto& members = bucket.parameters;
    if (std::find(members.begin(), members.end(), parameter) != members.end()) --bucket.pending;
  }
  const std::size_t before = next_bucket_;
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0)
    launch(next_bucket_++);
  const bool is_last = next_bucket_ != before && next_bucket_ == buckets_.size();
  if (is_last && !options_.needs_manual_finalization)
    autograd_.queue_callback([this] { finalize(); });
}

bool DdpReducer::should_finalize_after_backward() const {
  return options_.needs_manual_finalization && will_rebuild();
}

void DdpReducer::finalize_backward() {
  if (!options_.needs_manual_finalization)
    throw AutogradError(
        "finalize_backward() called but manual backward finalization is not required.");
  if (!needs_finalize_)
    throw AutogradError(
        "finalize_backward() called but no gradient reduction requires finalization.");
  if (next_bucket_ != buckets_.size())
    throw AutogradError("finalize_backward() called before all DDP buckets were ready.");
  finalize();
}

void DdpReducer::copy_to_bucket(std::size_t parameter) {
  const Tensor grad = parameters_[parameter].grad();
  const Tensor& tensor = parameters_[parameter];
  contents_[parameter] =
      grad.is_defined() ? grad.on(grad.device())
                        : Tensor::full(tensor.sizes(), 0.0, tensor.dtype()).on(tensor.device());
}

void DdpReducer::launch(std::size_t bucket) {
  on_bucket_(bucket, buckets_[bucket].parameters);
}

// After the first backward of a static graph: everything at once.
void DdpReducer::launch_all_late() {
  unused_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (hooks_fired_[i] == 0) unused_.push_back(i);
    copy_to_bucket(i);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) launch(i);
  has_counted_ = true;
  finalize();
}

// A parameter that is unused everywhere keeps its gradient as it is; any other one gets what the
// bucket holds, zeros if it had none.
void DdpReducer::finalize() {
  expects_hooks_ = false;
  needs_finalize_ = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool may_be_unused = options_.finds_unused || options_.is_static_graph;
    if (may_be_unused && !is_used_[i]) continue;
    const Tensor grad = parameters_[i].grad();
    if (grad.is_defined()) {
      autograd_.ops().copy_in_place(grad, contents_[i]);
    } else {
      parameters_[i].set_grad(contents_[i]);
    }
  }
}

}  // namespace zeroproof
