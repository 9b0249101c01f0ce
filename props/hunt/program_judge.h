#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "props/relations/relation.h"

namespace zeroproof::hunt {

// What judges a run of a program.
struct ProgramJudge {
  enum class Kind : std::uint8_t { values, events, relation };
  Kind kind = Kind::values;
  const relations::Relation* relation = nullptr;  // static; of that kind alone
};

// "values", "events", or the number of a relation; and back, none where it is no such name.
std::string name_of(const ProgramJudge& judge);
std::optional<ProgramJudge> judge_named(std::string_view name);

}  // namespace zeroproof::hunt
