// `zeroproof-mutation score`: the mutants that rules make of statements.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "props/cli/budget.h"
#include "props/cli/interrupt.h"
#include "props/cli/verb.h"
#include "props/mutation/score/score_report.h"
#include "props/report/progress.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kMostWorkers = 64;
constexpr const char* kPinned = ZP_SOURCE_DIR "/tests/mutation/corpus";

class ScoreVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(corpus_,
                    {"FILE", "corpus entries to run (default: those of tests/mutation/corpus)"});
    flags.add_value("cases", cases_, {"N", "drawn cases beside them (default 100)"});
    flags.add_value("mutants", mutants_,
                    {"LIST", "numbers of mutants, with commas (default: all)"});
    flags.add_value("sample", sample_, {"N", "so many mutants, evenly spread (default: all)"});
    flags.add_value("runs", runs_, {"N", "runs of one mutant at most (default 60)"});
    flags.add_value("limit", limit_, {"SECONDS", "of one mutant, then it is killed (default 30)"});
    flags.add_value("workers", workers_, {"N", "processes (default: as the machine has)"});
  }

  Result<VerbResult> run(Session& session) override {
    mutation::ScoreOptions options{.workers = std::max(1U, std::thread::hardware_concurrency()),
                                   .should_stop = was_interrupted};
    std::uint64_t cases = 100;
    if (auto read = read_flags(options, cases); !read) return tl::unexpected(read.error());
    if (auto read = read_numbers(options.numbers); !read) return tl::unexpected(read.error());
    ProgressLine progress(session.common.progress);
    ProgressView view{.task = "score", .strategy = "corpus"};
    auto made = mutation::make_corpus(files(), cases, session.common.seed, [&](std::size_t runs) {
      view.runs = runs;
      progress.update([&] { return view; });
    });
    if (!made) return tl::unexpected(made.error());
    const auto corpus = std::make_shared<const mutation::Corpus>(std::move(*made));
    view.strategy = "mutants";
    options.on_progress = [&](std::size_t mutants, std::size_t killed) {
      view.runs = mutants;
      view.findings = killed;
      progress.update([&] { return view; });
    };
    const auto score = std::make_shared<const mutation::Score>(mutation::score(*corpus, options));
    progress.finish(view);
    return VerbResult{.code = score->is_interrupted ? ExitCode::interrupted : ExitCode::held,
                      .text =
                          [corpus, score, &session] {
                            return session.seed_line() +
                                   score_text(*corpus, *score, session.palette);
                          },
                      .json = [corpus, score] { return score_json(*corpus, *score); }};
  }

 private:
  std::vector<std::string> files() const {
    if (!corpus_.empty()) return corpus_;
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(kPinned, none))
      files.push_back(file.path().string());
    std::ranges::sort(files);
    return files;
  }

  Result<void> read_numbers(std::vector<int>& numbers) const {
    std::istringstream words(mutants_);
    for (std::string word; std::getline(words, word, ',');) {
      const auto number = parse_count(word, "--mutants");
      if (!number) return tl::unexpected(number.error());
      if (*number < 1 || *number > mutation::mutant_table().size())
        return fail(ErrorCode::usage, fmt::format("--mutants: {}: numbers go from 1 to {}", word,
                                                  mutation::mutant_table().size()));
      numbers.push_back(static_cast<int>(*number));
    }
    return {};
  }

  Result<void> read_flags(mutation::ScoreOptions& options, std::uint64_t& cases) const {
    const auto read = [](const std::string& word, const char* flag, auto& value,
                         std::uint64_t most) -> Result<void> {
      if (word.empty()) return {};
      const auto count = parse_count(word, flag);
      if (!count) return tl::unexpected(count.error());
      if (*count > most) return fail(ErrorCode::usage, fmt::format("{}: at most {}", flag, most));
      value = static_cast<std::remove_reference_t<decltype(value)>>(*count);
      return {};
    };
    return read(cases_, "--cases", cases, 1'000'000)
        .and_then([&] { return read(sample_, "--sample", options.sample, 1'000'000); })
        .and_then([&] { return read(runs_, "--runs", options.runs_max, 1'000'000); })
        .and_then([&] { return read(limit_, "--limit", options.limit_seconds, 86'400); })
        .and_then([&] { return read(workers_, "--workers", options.workers, kMostWorkers); });
  }

  std::vector<std::string> corpus_;
  std::string cases_;
  std::string mutants_;
  std::string sample_;
  std::string runs_;
  std::string limit_;
  std::string workers_;
};

std::unique_ptr<Verb> make_score() {
  return std::make_unique<ScoreVerb>();
}

constexpr VerbInfo kVerbs[] = {{"score",
                                "says which mutants of single statements the properties kill",
                                "  zeroproof-mutation score --cases 200\n"
                                "  zeroproof-mutation score --sample 500 --json\n",
                                make_score}};

}  // namespace

const ProgramInfo& program_info() {
  static constexpr ProgramInfo kProgram{
      .name = "zeroproof-score",
      .about =
          "The engine of zeroproof with mutants of its statements, of which one may be active "
          "at a time.\n"};
  return kProgram;
}

std::span<const VerbInfo> verb_table() {
  return kVerbs;
}

}  // namespace zeroproof
