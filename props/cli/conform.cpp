// `zeroproof conform`: our port of each recorded program against PyTorch's or DeepSpeed's own run.
#include "props/conform/conform.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>

#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/conform/deepspeed_conform.h"
#include "props/replay/trace_paths.h"
#include "props/report/conform_report.h"

namespace zeroproof {
namespace {

constexpr double kFloat32Tolerance = 1e-5;

class ConformVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(
        words_, {"TRACE", "traces of conformance programs or DeepSpeed runs, or folders of them"});
    flags.add_value(
        "dtype", dtype_,
        {"DTYPE",
         "precision of the programs: float64 (default, compared to 1e-12) or float32 (to 1e-5)",
         {"float64", "float32"}});
  }

  Result<VerbResult> run(Session& session) override {
    if (words_.empty())
      return fail(ErrorCode::usage, "conform: name at least one trace or folder of traces");
    ConformOptions options;
    if (dtype_ == "float32") options = {DType::float32, kFloat32Tolerance};
    const auto report = std::make_shared<ConformReport>();
    for (const std::string& word : words_) {
      const auto paths = trace_paths(word);
      if (!paths) return tl::unexpected(paths.error());
      for (const std::string& path : *paths) {
        if (was_interrupted()) break;
        add(path, options, *report);
      }
    }
    if (auto some = check_some_compared(*report); !some) return tl::unexpected(some.error());
    return result_of(session, report);
  }

 private:
  // One damaged or missing file does not keep the others from being compared.
  void add(const std::string& path, const ConformOptions& options, ConformReport& report) {
    auto outcome = compare(path, options);
    if (!outcome) {
      report.outcomes.push_back({.path = path,
                                 .program = std::filesystem::path(path).filename(),
                                 .status = ConformStatus::incomplete,
                                 .detail = outcome.error().text});
    } else if (*outcome) {
      report.outcomes.push_back(std::move(**outcome));
    }
  }

  // Of a training run all ranks together, at the first of its traces; none at the others.
  Result<std::optional<ConformOutcome>> compare(const std::string& path,
                                                const ConformOptions& options) {
    const auto is_training = is_training_trace(path);
    if (!is_training) return tl::unexpected(is_training.error());
    if (!*is_training) return conform(path, options);
    const auto ranks = rank_paths(path);
    if (!ranks) return tl::unexpected(ranks.error());
    if (!runs_.insert(ranks->front()).second) return std::nullopt;
    return conform_deepspeed(*ranks);
  }

  static Result<void> check_some_compared(const ConformReport& report) {
    const std::size_t incomplete = report.count(ConformStatus::incomplete);
    if (incomplete == 0 || incomplete < report.outcomes.size()) return {};
    return fail(ErrorCode::unreadable, report.outcomes.front().detail);
  }

  static ExitCode exit_code_of(const ConformReport& report) {
    if (report.count(ConformStatus::order_mismatch) > 0) return ExitCode::falsified;
    if (report.count(ConformStatus::collective_mismatch) > 0) return ExitCode::falsified;
    if (report.count(ConformStatus::value_mismatch) > 0) return ExitCode::falsified;
    if (was_interrupted()) return ExitCode::interrupted;
    const bool is_whole = report.count(ConformStatus::unknown) == 0 &&
                          report.count(ConformStatus::incomplete) == 0 && !report.outcomes.empty();
    return is_whole ? ExitCode::held : ExitCode::inconclusive;
  }

  static VerbResult result_of(const Session& session,
                              const std::shared_ptr<ConformReport>& report) {
    return VerbResult{.code = exit_code_of(*report),
                      .text =
                          [report, &session] {
                            return session.seed_line() + conform_text(*report, session.palette) +
                                   session.reproduce_line(exit_code_of(*report));
                          },
                      .json = [report] { return conform_json(*report); },
                      .junit = [report] { return conform_cases(*report); }};
  }

  std::vector<std::string> words_;
  std::string dtype_;
  std::set<std::string> runs_;  // done, by the path of rank 0
};

}  // namespace

std::unique_ptr<Verb> make_conform() {
  return std::make_unique<ConformVerb>();
}

}  // namespace zeroproof
