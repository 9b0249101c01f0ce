#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/axis_plan.h"
#include "engine/checkpoint/state_reader.h"

namespace zeroproof {

// A state of a checkpoint as one tensor-parallel rank has it, of as many ranks as saved it or of
// another number; read a range at a time. Beside what it returns it holds a part of a block of
// each rank that saved it.
class ReshardedState {
 public:
  // `saved`: what each tensor-parallel rank saved, in their order; one, if all have it alike.
  // `files` must outlive it. Errors: unreadable names the file; usage says why `rule` does not fit.
  static Result<ReshardedState> open(RangedFileSystem& files, const std::string& checkpoint,
                                     const std::vector<const StoredState*>& saved,
                                     const PartitionRule& rule, const ParallelRank& tensor);

  const Shape& sizes() const { return plan_.sizes; }
  // That of all saved parts; float64 if they differ, which holds every value.
  DType dtype() const { return dtype_; }
  const PartitionRule& rule() const { return rule_; }  // by which the parts make it again
  // The elements [begin, begin + elements) as bytes of a tensor file of dtype(). In order, each
  // byte of the files is read once.
  Result<std::string> read(std::int64_t begin, std::int64_t elements);

 private:
  struct Part {
    StateReader reader;
    std::int64_t begin = 0;  // of what is held
    std::string held;        // elements of dtype_
  };
  Result<void> append(const PartPiece& piece, std::string& bytes);
  Result<void> hold(Part& part, std::int64_t begin) const;

  std::size_t item_ = 0;  // bytes of an element
  DType dtype_ = DType::float32;
  std::vector<Part> parts_;
  std::vector<Shape> sizes_;  // of the parts
  AxisPlan plan_;
  PartitionRule rule_;
};

}  // namespace zeroproof
