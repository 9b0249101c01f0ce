#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof {

// What PyTorch began to do differently, where a program can see it.
enum class TorchChange : std::uint8_t {
  checkpoint_inputs_without_node,    // they are saved by the region, not by a node (rule K4)
  linear_unflattens_by_unsafe_view,  // the name of the last node for three-dimensional input
};

// A release of PyTorch, by what it does. The newest that is modelled unless another is named.
class TorchRelease {
 public:
  TorchRelease() = default;

  // "2.11.0" or "2.15.0+cu132"; an error names the text and shows an example.
  static Result<TorchRelease> parse(std::string_view text);

  bool has(TorchChange change) const;

 private:
  TorchRelease(int major, int minor) : major_(major), minor_(minor) {}

  int major_ = 2;
  int minor_ = 15;
};

struct TorchChangeRow {
  TorchChange change;
  int major;  // of the first release that behaves so
  int minor;
};

// Every change once, in the order of the releases.
std::span<const TorchChangeRow> torch_changes();

}  // namespace zeroproof
