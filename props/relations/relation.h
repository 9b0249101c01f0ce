#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "props/interpreter/data_plan.h"
#include "props/interpreter/observation.h"
#include "props/program/program.h"
#include "zeroproof/props/property.h"

namespace zeroproof::relations {

// A program that has to train as another one does.
struct Other {
  program::Program program;
  program::DataChange change = {};
};

// A set of what ranks observe.
template <class... Kinds>
constexpr std::uint32_t kinds(Kinds... observed) {
  return ((1U << static_cast<unsigned>(observed)) | ... | 0U);
}

// A sentence about two runs of one engine; no reference is asked. Static.
struct Relation {
  std::string_view number;  // of its Property
  // None: the relation does not speak of this program.
  std::optional<Other> (*other)(const program::Program& program) = nullptr;
  std::uint32_t ignores = 0;  // kinds() that may differ
  int exponent = 0;           // losses, gradients, norm and optimizer state are times two to it
  // Bit by bit, also where data are random numbers.
  bool is_bitwise = false;

  const Property& property() const;
  bool compares(program::Observed what) const {
    return (ignores >> static_cast<unsigned>(what) & 1U) == 0;
  }
};

// In the order of their numbers.
std::span<const Relation> all_relations();
// By number ("MR1") or id; null where there is none.
const Relation* find_relation(std::string_view number_or_id);

}  // namespace zeroproof::relations
