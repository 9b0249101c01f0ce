#include "props/relations/pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "props/interpreter/difference.h"
#include "props/interpreter/program_count.h"
#include "props/train/scenario.h"

namespace zeroproof::relations {
namespace {

using program::Expectation;
using program::Observation;
using program::Observations;
using program::Observed;
using program::RunnableProgram;

// What has to be refused, in the order of the text: which kind of statement, and how.
std::vector<std::pair<std::size_t, Expectation>> refusals_of(const RunnableProgram& runnable) {
  std::vector<std::pair<std::size_t, Expectation>> refusals;
  program::visit_statements(runnable.program().body, [&](const program::Statement& statement) {
    const Expectation& expected = runnable.contract().of(statement);
    if (expected.is_refused()) refusals.emplace_back(statement.kind.index(), expected);
  });
  return refusals;
}

// Of what is linear in the losses.
bool is_scaled(const Observation& seen) {
  switch (seen.what) {
    case Observed::loss:
    case Observed::gradients:
    case Observed::norm:
      return true;
    case Observed::update:
      return seen.name.find("state ") != std::string::npos && !seen.name.ends_with("/step");
    default:
      return false;
  }
}

}  // namespace

std::unique_ptr<const Pair> Pair::make(const Relation& relation, const RunnableProgram& first) {
  auto other = relation.other(first.program());
  if (!other) return nullptr;
  auto runnable =
      RunnableProgram::make_beside(std::move(other->program), first, std::move(other->change));
  if (!runnable || refusals_of(**runnable) != refusals_of(first)) return nullptr;
  return std::make_unique<const Pair>(relation, first, std::move(*runnable));
}

// What the other program's ranks have to see.
Observations Pair::expected(const Observations& seen, const ZeroConfig& config) const {
  Observations expected;
  for (const Observation& one : seen) {
    if (!relation_.compares(one.what)) continue;
    // Gradients are local before a step that reduces them.
    if (one.what == Observed::gradients && train::reduces_in_step(config)) continue;
    expected.push_back(one);
    if (relation_.exponent == 0 || !is_scaled(one)) continue;
    const bool is_squared = one.name.ends_with("/exp_avg_sq");
    for (double& value : expected.back().values)
      value = std::ldexp(value, is_squared ? 2 * relation_.exponent : relation_.exponent);
  }
  return expected;
}

std::optional<Pair::Finding> Pair::compare(const program::SegmentRun& first,
                                           const program::SegmentRun& other,
                                           const ZeroConfig& config) const {
  const program::Tolerance tolerance =
      relation_.is_bitwise ? program::Tolerance{} : program::tolerance_of(first_.program());
  const int tensor = first_.program().world.tensor;
  const int ranks = static_cast<int>(other.ranks.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const int data = other_->data().change().role_of(rank / tensor, ranks / tensor);
    const int of = data * tensor + rank % tensor;
    const auto found = program::differences(
        other.ranks[static_cast<std::size_t>(rank)].seen,
        expected(first.ranks.at(static_cast<std::size_t>(of)).seen, config), tolerance);
    if (!found.empty()) return Finding{rank, found.front().text};
  }
  return std::nullopt;
}

std::optional<Pair::Finding> Pair::compare(const program::ProgramRun& first,
                                           const program::ProgramRun& other) const {
  for (std::size_t i = 0; i < std::min(first.segments.size(), other.segments.size()); ++i)
    if (auto finding = compare(first.segments[i], other.segments[i], other_->segments()[i].config))
      return finding;
  return std::nullopt;
}

}  // namespace zeroproof::relations
