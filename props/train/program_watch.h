#pragma once

#include <functional>
#include <string_view>

#include "zeroproof/model/event_kind.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof::train {

// Sees what only the model itself knows: where the body of a checkpoint or a custom Function
// begins and ends.
class ProgramWatch {
 public:
  virtual ~ProgramWatch() = default;
  // Runs the body of a checkpoint between its events: those of a forward, or of a recompute when
  // a graph task is current.
  virtual TensorList run_checkpoint(std::string_view label,
                                    const std::function<TensorList()>& body) = 0;
  virtual void on_function(EventKind kind, std::string_view label) = 0;
};

}  // namespace zeroproof::train
