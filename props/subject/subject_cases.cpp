#include "props/subject/subject_cases.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "props/hunt/program_hunt.h"
#include "props/program/draw.h"
#include "sim/fingerprint.h"

namespace zeroproof::subject {

Result<SubjectCases> SubjectCases::of(std::string_view capabilities, std::string_view where) {
  auto parsed = program::Capabilities::parse(capabilities, where);
  if (!parsed) return tl::unexpected(parsed.error());
  SubjectCases cases;
  cases.grammar_ = program::SubjectGrammar::learn(std::move(*parsed));
  // However the document is laid out.
  const std::string document = nlohmann::json::parse(capabilities).dump();
  cases.fingerprint_ = fmt::format("{:016x}", fingerprint_of(document).low);
  return cases;
}

DrawnCase SubjectCases::draw(program::Source source) const {
  const program::SubjectGrammar* const grammar = grammar_ ? &*grammar_ : nullptr;
  program::DrawnProgram made = program::draw_with_productions(source, grammar);
  DrawnCase drawn{.id = {},
                  .program = std::move(made.program),
                  .productions = std::move(made.productions),
                  .choices = source.choices(),
                  .lacking = std::nullopt};
  drawn.lacking = lack(drawn.program);
  return drawn;
}

std::optional<std::string> SubjectCases::lack(const program::Program& program) const {
  return grammar_ ? grammar_->capabilities.lack(program) : std::nullopt;
}

// The first candidate is drawn from the case's own seed.
DrawnCase SubjectCases::at(CaseId id) const {
  const std::uint64_t first = hunt::case_seed(id.seed, id.number);
  const std::uint64_t seed = id.candidate == 0 ? first : hunt::case_seed(first, id.candidate);
  DrawnCase drawn = draw(program::Source(seed));
  drawn.id = id;
  return drawn;
}

std::string SubjectCases::token_of(CaseId id) const {
  const std::string candidate = id.candidate == 0 ? "" : fmt::format(".{}", id.candidate);
  return fmt::format("zpg1:{}:{}{}:{}", id.seed, id.number, candidate, fingerprint_);
}

}  // namespace zeroproof::subject
