#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/checkpoint/parallel_place.h"
#include "zeroproof/engine/partition_rule.h"
#include "zeroproof/model/result.h"
#include "zeroproof/model/tensor.h"

namespace zeroproof {

// A run of positions along the axis of one part; of kZeros: as many zeros.
struct AxisRun {
  static constexpr int kZeros = -1;
  int part = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

// A tensor that is made of parts: their runs along one axis, in a row. Shapes alone, no values.
struct AxisPlan {
  std::optional<std::int64_t> axis;  // none: part 0 as it is
  std::vector<AxisRun> runs;
  Shape sizes;  // of what is made
};

struct CutPlan {
  AxisPlan plan;       // part 0: the whole
  PartitionRule rule;  // by which the parts make it again
};

// What a rank has of a whole tensor, in the order of docs/spec/zero.md 6.3 after experts:
// replicated if the shapes agree, vocabulary, then the recorded partition. `target`: the shape that
// this rank has; none: whatever comes out. The error says what does not fit, without a file.
Result<CutPlan> plan_cut(const Shape& whole, const PartitionRule& rule, const ParallelRank& tensor,
                         const std::optional<Shape>& target);
// The other way: the whole, of the parts of all tensor-parallel ranks in rank order.
Result<AxisPlan> plan_join(const std::vector<Shape>& parts, const PartitionRule& rule);
// Parts one after another along an axis, of the same shape but for that axis.
Result<AxisPlan> plan_concatenation(const std::vector<Shape>& parts, std::int64_t axis);
// That a part is as large as wanted.
Result<void> check_target(const Shape& part, const Shape& whole,
                          const std::optional<Shape>& target);

// What `outer` makes of the tensor that `inner` makes, by the parts of `inner`.
AxisPlan composed(const AxisPlan& outer, const AxisPlan& inner);

// What a rank has of what other ranks saved as `parts`, in their order: joined, then cut. Errors as
// those of the two, or of check_target().
Result<CutPlan> plan_reshard(const std::vector<Shape>& parts, const PartitionRule& rule,
                             const ParallelRank& tensor, const std::optional<Shape>& target);

// Elements in a row of one part, row-major; of kZeros: `begin` has no meaning.
struct PartPiece {
  int part = 0;
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};
// Of what the elements [begin, begin + elements) are made, in their order, until `take` is false.
void each_piece(const AxisPlan& plan, const std::vector<Shape>& parts, std::int64_t begin,
                std::int64_t elements, const std::function<bool(const PartPiece&)>& take);

std::string shape_text(const Shape& sizes);  // "[4, 3]"

}  // namespace zeroproof
