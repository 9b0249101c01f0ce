#include "props/train/transform_watch.h"

#include <algorithm>

namespace zeroproof::train {

TransformWatch::TransformWatch(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

void TransformWatch::attach(std::size_t rank, EngineTarget::Options& options) {
  options.models = &ranks_[rank];
  options.autograd = &ranks_[rank];
}

std::set<std::string> TransformWatch::reached() const {
  std::set<std::string> all;
  for (const Rank& rank : ranks_) all.insert(rank.reached().begin(), rank.reached().end());
  return all;
}

void TransformWatch::Rank::on_model(Autograd&, nn::Module& module, const std::string& prefix) {
  module.register_forward_pre_hook([this](const TensorList&) {
    ++forwards_;
    return TensorList();
  });
  module.register_forward_hook([this](const TensorList&, const TensorList&) {
    --forwards_;
    return TensorList();
  });
  for (const nn::NamedParameter& parameter : module.named_parameters())
    if (parameter.tensor.requires_grad())
      parameter.tensor.register_post_accumulate_grad_hook(
          [this, prefix](const Tensor&) { on_gradient(prefix); });
}

TensorList TransformWatch::Rank::run_checkpoint(std::string_view,
                                                const std::function<TensorList()>& body) {
  if (backwards_.empty()) return body();
  ++recomputes_;
  TensorList outputs = body();
  --recomputes_;
  return outputs;
}

void TransformWatch::Rank::on_backward_begin(const BackwardCall&) {
  backwards_.push_back(
      {.is_in_forward = forwards_ > 0, .hooked = {}, .hooked_before_transform = {}});
}

void TransformWatch::Rank::on_backward_end(std::exception_ptr) {
  backwards_.pop_back();
}

void TransformWatch::Rank::on_transform_push(const TransformFrame&) {
  if (backwards_.empty()) {
    if (forwards_ > 0) reached_.insert(kTransformInForward);
    return;
  }
  if (recomputes_ > 0) reached_.insert(kTransformInRecompute);
  if (std::ranges::any_of(backwards_, &Backward::is_in_forward))
    reached_.insert(kTransformInPreUserBackward);
  Backward& outermost = backwards_.front();
  outermost.hooked_before_transform = outermost.hooked;
}

void TransformWatch::Rank::on_gradient(const std::string& engine) {
  if (backwards_.empty()) return;
  Backward& outermost = backwards_.front();
  outermost.hooked.insert(engine);
  for (const std::string& before : outermost.hooked_before_transform)
    if (before != engine) reached_.insert(kTransformBetweenEngines);
}

}  // namespace zeroproof::train
