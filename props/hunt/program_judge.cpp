#include "props/hunt/program_judge.h"

namespace zeroproof::hunt {

std::string name_of(const ProgramJudge& judge) {
  if (judge.kind == ProgramJudge::Kind::relation) return std::string(judge.relation->number);
  return judge.kind == ProgramJudge::Kind::events ? "events" : "values";
}

std::optional<ProgramJudge> judge_named(std::string_view name) {
  if (name == "values") return ProgramJudge{ProgramJudge::Kind::values};
  if (name == "events") return ProgramJudge{ProgramJudge::Kind::events};
  const relations::Relation* const relation = relations::find_relation(name);
  if (!relation) return std::nullopt;
  return ProgramJudge{ProgramJudge::Kind::relation, relation};
}

}  // namespace zeroproof::hunt
