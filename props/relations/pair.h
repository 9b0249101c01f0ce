#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/interpreter/program_run.h"
#include "props/relations/relation.h"

namespace zeroproof::relations {

// A program and the one that a relation compares it with. Immutable.
class Pair {
 public:
  // None: the relation does not speak of the program; or its other program is none, or has to be
  // refused where this one is not. `first` must outlive it.
  static std::unique_ptr<const Pair> make(const Relation& relation,
                                          const program::RunnableProgram& first);

  const Relation& relation() const { return relation_; }
  const program::RunnableProgram& other() const { return *other_; }

  // The first place where they differ, and its rank; both runs came to their end.
  struct Finding {
    int rank = 0;
    std::string text;
  };
  std::optional<Finding> compare(const program::ProgramRun& first,
                                 const program::ProgramRun& other) const;

  // As make() does, of programs that agree in what is refused.
  Pair(const Relation& relation, const program::RunnableProgram& first,
       std::unique_ptr<const program::RunnableProgram> other)
      : relation_(relation), first_(first), other_(std::move(other)) {}

 private:
  std::optional<Finding> compare(const program::SegmentRun& first, const program::SegmentRun& other,
                                 const ZeroConfig& config) const;
  program::Observations expected(const program::Observations& seen, const ZeroConfig& config) const;

  const Relation& relation_;
  const program::RunnableProgram& first_;
  std::unique_ptr<const program::RunnableProgram> other_;
};

}  // namespace zeroproof::relations
