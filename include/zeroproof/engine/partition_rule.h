#pragma once

#include <cstdint>
#include <string>

#include "zeroproof/model/tensor.h"

namespace zeroproof {

enum class PartitionKind : std::uint8_t {
  inferred,     // no record: replicated if the shapes agree, else cut along `axis`
  replicated,   // whole on every tensor-parallel rank
  sliced,       // cut as recorded: sub-parameters, sizes, or evenly
  vocabulary,   // rows, padded with zeros to a multiple
  unsupported,  // it cannot be cut; `note` says why
};

// How the ranks of a tensor-parallel group share one parameter and its optimizer state
// (docs/spec/zero.md 6.3; docs/reference/checkpoints.md 4). Plain data.
struct PartitionRule {
  PartitionKind kind = PartitionKind::inferred;
  std::int64_t axis = 0;
  // Whole widths along the axis of what is cut each on its own (query, key and value of a fused
  // projection); empty: one.
  Shape sub_parameters = {};
  // What each rank holds along the axis; used when as many ranks load. Empty: equal parts.
  Shape partition_sizes = {};
  std::int64_t vocabulary_rows = 0;  // without padding; 0: as many as there are
  std::int64_t experts = 0;          // of an expert parameter: its first dimension, whole
  std::string note = {};
  friend bool operator==(const PartitionRule&, const PartitionRule&) = default;
};

}  // namespace zeroproof
