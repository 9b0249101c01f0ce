#include "props/program/subject_grammar.h"

#include <algorithm>
#include <utility>

#include "props/program/draw.h"

namespace zeroproof::program {
namespace {

// Each draws jobs until one has a place for the row. A place need not be taken: a row that has one
// in half of the programs is missed once in 16 times.
constexpr std::uint64_t kTries = 4;

// A policy of this row alone. What it is about decides which models and worlds there are.
Policy policy_of(std::size_t row, const SubjectGrammar& subject) {
  Policy policy;
  policy.is_plain = true;
  policy.subject = &subject;
  policy.rows = {row};
  policy.tags = grammar()[row].tags;
  if (subject.capabilities.engines() < 2) policy.tags &= ~tags(Tag::engines);
  return policy;
}

bool can_make(std::size_t row, const SubjectGrammar& subject) {
  const Policy policy = policy_of(row, subject);
  for (std::uint64_t seed = 0; seed < kTries; ++seed) {
    Source source(seed);
    const DrawnProgram drawn = draw_with_policy(source, policy);
    if (std::ranges::find(drawn.productions, &grammar()[row]) != drawn.productions.end())
      return true;
  }
  return false;
}

}  // namespace

bool SubjectGrammar::has(std::size_t row) const {
  return std::ranges::binary_search(rows, row);
}

SubjectGrammar SubjectGrammar::learn(Capabilities capabilities) {
  SubjectGrammar all{.capabilities = std::move(capabilities), .rows = {}};
  for (std::size_t row = 0; row < grammar().size(); ++row) all.rows.push_back(row);
  std::vector<std::size_t> rows = {0};
  for (std::size_t row = 1; row < grammar().size(); ++row)
    if (can_make(row, all)) rows.push_back(row);
  all.rows = std::move(rows);
  return all;
}

}  // namespace zeroproof::program
