#pragma once

#include <string_view>

namespace zeroproof {

// What the ranks of a group must agree on when they issue one collective, and what its completion
// proves.
struct CollectiveRule {
  std::string_view op;
  bool has_same_size = false;    // the recorded size is the same number on every rank
  bool has_root = false;         // one rank is the root, and every rank must name the same one
  bool joins_all_ranks = false;  // it cannot complete before every rank has issued it
};

// The rule of an operation, by PyTorch's name. An unknown operation has no rule beyond its name.
const CollectiveRule& collective_rule(std::string_view op);

}  // namespace zeroproof
