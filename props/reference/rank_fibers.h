#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "zeroproof/model/tensor.h"

namespace zeroproof::reference {

// What one rank brings to a meeting: local gradients of each reduction since the last one.
using Contribution = std::vector<TensorList>;

// Meetings of ranks that run as fibers of one thread, in rank order.
class Meetings {
 public:
  explicit Meetings(int ranks) : arrived_(static_cast<std::size_t>(ranks), 0) {}

  // What all ranks brought, in their order. Suspends the rank until the last has come.
  const std::vector<Contribution>& meet(int rank, Contribution brought);

 private:
  friend void run_ranks(int ranks,
                        const std::function<void(int rank, Meetings& meetings)>& program);

  struct Meeting {
    std::vector<Contribution> brought;
    std::size_t ranks = 0;
  };
  std::vector<std::size_t> arrived_;  // meetings that each rank has come to
  std::vector<std::unique_ptr<Meeting>> meetings_;
  std::function<void(int rank)> suspend_;
};

// Runs the program once a rank, in turns at their meetings. Rethrows what the first rank threw;
// ZP_CHECK: all ranks come to the same meetings.
void run_ranks(int ranks, const std::function<void(int rank, Meetings& meetings)>& program);

}  // namespace zeroproof::reference
