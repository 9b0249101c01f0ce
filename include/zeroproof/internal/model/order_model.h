#pragma once

#include <cstdint>

namespace zeroproof {

// Which orders of a graph task's nodes are legal.
enum class OrderModel : std::uint8_t {
  faithful,         // PyTorch's ready queue on one thread (rules Q1, Q2): one order
  any_topological,  // every linear extension of what can be seen: a wider net
};

}  // namespace zeroproof
