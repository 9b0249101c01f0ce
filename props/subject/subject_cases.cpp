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
  DrawnCase drawn{.program = program::draw_with_productions(source, grammar).program,
                  .choices = source.choices(),
                  .lacking = std::nullopt};
  drawn.lacking = lack(drawn.program);
  return drawn;
}

std::optional<std::string> SubjectCases::lack(const program::Program& program) const {
  return grammar_ ? grammar_->capabilities.lack(program) : std::nullopt;
}

DrawnCase SubjectCases::at(std::uint64_t seed, std::uint64_t number) const {
  return draw(program::Source(hunt::case_seed(seed, number)));
}

std::string SubjectCases::token_of(std::uint64_t seed, std::uint64_t number) const {
  return fmt::format("zpg1:{}:{}:{}", seed, number, fingerprint_);
}

}  // namespace zeroproof::subject
