#pragma once

#include <utility>

#include "zeroproof/internal/model/node.h"

namespace zeroproof {

// The artificial node that feeds several roots (rule G3); its number is the caller's next one.
class GraphRoot final : public Node {
 public:
  GraphRoot(Autograd& autograd, std::uint64_t sequence_nr, TensorList grads)
      : Node(autograd, sequence_nr), grads_(std::move(grads)) {}

  std::string_view name() const override { return "GraphRoot"; }
  TensorList apply(TensorList) override { return grads_; }

 private:
  TensorList grads_;
};

}  // namespace zeroproof
