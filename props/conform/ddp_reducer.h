#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "zeroproof/model/autograd.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

struct DdpOptions {
  std::int64_t bucket_bytes_cap = std::int64_t{25} << 20;  // also of the first bucket
  bool finds_unused = false;
  bool is_static_graph = false;
  bool needs_manual_finalization = false;  // no callback finishes the backward
};

// DistributedDataParallel's reducer in a world of one (docs/spec/autograd.md 18): which hooks
// it puts where and when a bucket is reduced. A reduction gives back what it got. The Autograd
// must outlive it, and no backward of its forwards may run after its end.
class DdpReducer {
 public:
  // Sees every bucket as it is launched, with the parameters in it by their index.
  using BucketHook = std::function<void(std::size_t bucket, const std::vector<std::size_t>&)>;

  // Holds the accumulators of `parameters` for as long as it lives.
  DdpReducer(Autograd& autograd, TensorList parameters, const DdpOptions& options,
             BucketHook on_bucket);
  ~DdpReducer();
  DdpReducer(const DdpReducer&) = delete;
  DdpReducer& operator=(const DdpReducer&) = delete;

  // The module's forward, ready for one backward. AutogradError when the backward before left
  // buckets unreduced; the backward throws it when a parameter is ready twice.
  Tensor forward(const nn::Module& module, const Tensor& input);

  // Manual finalization: whether this backward has to return before finalize_backward().
  bool should_finalize_after_backward() const;
  // Writes the reduced buckets to the gradients. AutogradError before all of them were launched.
  void finalize_backward();

  // no_sync(): off, gradients only accumulate. Returns what it was.
  bool set_sync(bool is_on) { return std::exchange(is_sync_on_, is_on); }

 private:
  struct Bucket {
    std::vector<std::size_t> parameters;
    std::size_t pending = 0;
  };

  std::int64_t bytes_of(std::size_t parameter) const;
  std::vector<Bucket> assign_buckets(const std::vector<std::size_t>& order, std::int64_t cap) const;
  bool will_rebuild() const;
  void rebuild_buckets();
  void prepare_for_backward(const Tensor& output);
  Tensor sink(const Tensor& output);

  void on_accumulated(std::size_t parameter);
  void on_static_accumulated(std::size_t parameter);
  void mark_ready_by_hook(std::size_t parameter);
  void mark_unused();
  void mark_ready(std::size_t parameter);
  void copy_to_bucket(std::size_t parameter);
  void launch(std::size_t bucket);
  void launch_all_late();
  void finalize();

  Autograd& autograd_;
  TensorList parameters_;
  std::vector<Edge> accumulators_;
  std::vector<HookHandle> handles_;
  DdpOptions options_;
  BucketHook on_bucket_;
  std::vector<Bucket> buckets_;
  TensorList contents_;             // what each parameter's place in its bucket holds
  std::vector<std::size_t> order_;  // of readiness, until the buckets are rebuilt
  std::vector<std::size_t> unused_;
  std::vector<bool> is_ready_;
  std::vector<bool> is_used_;
  std::vector<int> hooks_fired_;  // in the first backward of a static graph
  std::vector<int> hooks_left_;   // in a later one
  std::size_t next_bucket_ = 0;
  bool is_sync_on_ = true;
  bool expects_hooks_ = false;
  bool needs_finalize_ = false;
  bool has_rebuilt_ = false;
  bool has_counted_ = false;  // the first backward of a static graph is over
  bool has_marked_unused_ = false;
  bool has_queued_late_ = false;
};

}  // namespace zeroproof
