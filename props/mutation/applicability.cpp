#include "props/mutation/applicability.h"

#include <algorithm>
#include <functional>

#include "props/interpreter/program_count.h"

namespace zeroproof::mutation {
namespace {

using namespace program;

bool any_statement(const Program& program, const std::function<bool(const Statement&)>& is_it) {
  bool found = false;
  visit_statements(program.body, [&](const Statement& it) { found = found || is_it(it); });
  return found;
}

template <class Kind>
bool has(const Program& program) {
  return any_statement(program,
                       [](const Statement& it) { return std::holds_alternative<Kind>(it.kind); });
}

}  // namespace

bool is_applicable(const Program& program, std::string_view property) {
  // Two engines of one name, which a record takes for one.
  if (has<Recreate>(program)) return property.front() == 'R';
  return true;
}

OverlapRules overlap_rules_of(const Program& program) {
  return {.judges_host = program.config.stage == 3,
          .engines = static_cast<int>(program.engines.size())};
}

}  // namespace zeroproof::mutation
