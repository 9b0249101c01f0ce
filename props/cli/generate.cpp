// `zeroproof generate`: programs for an engine that is not ours (docs/how-to/hunt_an_engine.md).
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/files/small_file.h"
#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/program/contract.h"
#include "props/program/program_json.h"
#include "props/program/program_text.h"
#include "props/program/refusals.h"
#include "props/subject/candidates.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uint64_t kCapabilityBytesMax = 1U << 20;
constexpr std::uint64_t kTriesEach = 50;  // of a subject that can do very little

struct Generated {
  std::vector<subject::DrawnCase> cases;
  subject::FeatureCounts features;     // of the cases
  std::map<std::string, int> skipped;  // by what the subject cannot do
  subject::SubjectCases subject;
};

std::string json_of(const Generated& generated) {
  std::string lines;
  for (const subject::DrawnCase& one : generated.cases) {
    if (!lines.empty()) lines += '\n';
    const OrderedJson token = generated.subject.token_of(one.id);
    lines += fmt::format(R"({{"schema":"zeroproof.case/1","case":{},"token":{},"program":{}{}}})",
                         one.id.number, token.dump(), program::program_line(one.program),
                         program::refusals_member(one.program));
  }
  return lines;
}

std::string text_of(const Generated& generated) {
  std::string text;
  for (const subject::DrawnCase& one : generated.cases) {
    const auto contract = program::Contract::of(one.program);
    text += fmt::format("case {}  {}\n{}\n", one.id.number, generated.subject.token_of(one.id),
                        program::program_text(one.program, contract ? &*contract : nullptr));
  }
  return text;
}

class GenerateVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_value(
        "for", capabilities_,
        {"FILE", "capabilities of the engine, zeroproof.capabilities/1 (default: all)"});
    flags.add_value("count", count_, {"N", "how many programs (default 10)"});
    flags.add_value("first", first_, {"N", "the number of the first case (default 0)"});
    flags.add_value(
        "candidates", candidates_,
        {"N", "draw N programs a case, and print the one with the rarest features so far"});
  }

  Result<VerbResult> run(Session& session) override {
    const auto count = parse_count(count_, "generate: --count");
    if (!count) return tl::unexpected(count.error());
    const auto first = parse_count(first_, "generate: --first");
    if (!first) return tl::unexpected(first.error());
    const bool is_guided = !candidates_.empty();
    const auto candidates = parse_count(is_guided ? candidates_ : "1", "generate: --candidates");
    if (!candidates) return tl::unexpected(candidates.error());
    auto read = read_subject();
    if (!read) return tl::unexpected(read.error());
    const std::uint64_t seed = session.common.seed;
    const auto generated = std::make_shared<Generated>(draw({seed, *first}, *count, *candidates));
    say_skipped(*generated, session);
    if (is_guided) say_features(*generated, session);
    return VerbResult{
        .code = code_of(*generated, *count),
        .text = [generated, &session] { return session.seed_line() + text_of(*generated); },
        .json = [generated] { return json_of(*generated); }};
  }

 private:
  Result<void> read_subject() {
    if (capabilities_.empty()) return {};
    const auto text = read_small_file(capabilities_, kCapabilityBytesMax);
    if (!text) return tl::unexpected(text.error());
    auto cases = subject::SubjectCases::of(*text, capabilities_);
    if (!cases) return tl::unexpected(cases.error());
    subject_ = std::move(*cases);
    return {};
  }

  // Without further candidates, case N of a seed is the same however many are asked for.
  Generated draw(subject::CaseId id, std::uint64_t count, std::uint64_t candidates) const {
    Generated generated;
    generated.subject = subject_;
    const std::uint64_t last = id.number + kTriesEach * count;
    for (; id.number < last && !was_interrupted(); ++id.number) {
      if (generated.cases.size() == count) break;
      auto ranked = subject::candidates_of(subject_, id, candidates, generated.features);
      subject::Candidate& rarest = ranked.front();
      if (rarest.drawn.lacking) {
        ++generated.skipped[*rarest.drawn.lacking];
        continue;
      }
      generated.features.add(rarest.features);
      generated.cases.push_back(std::move(rarest.drawn));
    }
    return generated;
  }

  static ExitCode code_of(const Generated& generated, std::uint64_t count) {
    if (was_interrupted()) return ExitCode::interrupted;
    return generated.cases.size() == count ? ExitCode::held : ExitCode::inconclusive;
  }

  static void say_features(const Generated& generated, const Session& session) {
    session.say(fmt::format("generate: {} programs have {} features", generated.cases.size(),
                            generated.features.size()));
  }

  static void say_skipped(const Generated& generated, const Session& session) {
    int sum = 0;
    std::string reasons;
    for (const auto& [reason, times] : generated.skipped) {
      sum += times;
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", reason, times);
    }
    if (sum > 0)
      session.say(fmt::format("generate: {} programs; {} skipped, which the subject cannot do: {}",
                              generated.cases.size(), sum, reasons));
  }

  std::string capabilities_;
  std::string count_ = "10";
  std::string first_ = "0";
  std::string candidates_;
  subject::SubjectCases subject_;
};

}  // namespace

std::unique_ptr<Verb> make_generate() {
  return std::make_unique<GenerateVerb>();
}

}  // namespace zeroproof
