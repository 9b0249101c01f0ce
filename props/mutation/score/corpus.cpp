#include "props/mutation/score/corpus.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <utility>

#include "engine/files/small_file.h"
#include "props/hunt/corpus.h"
#include "props/hunt/program_hunt.h"
#include "props/mutation/score/active_mutant.h"
#include "props/mutation/score/mutant_table.h"
#include "props/program/shrink.h"
#include "props/program/source_chooser.h"
#include "props/train/subject.h"

namespace zeroproof::mutation {

namespace detail {
constinit int active_mutant = 0;
constinit unsigned char* reached_mutants = nullptr;
}  // namespace detail

namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 26;

// A mutant is active on the threads of ranks alone, so that baselines and judges stay right.
class MutantScope final : public train::RankScope {
 public:
  MutantScope(int mutant, unsigned char* reached) {
    detail::active_mutant = mutant;
    detail::reached_mutants = reached;
  }
  ~MutantScope() override {
    detail::active_mutant = 0;
    detail::reached_mutants = nullptr;
  }
};

hunt::CaseResult judged(const CorpusRun& run, int mutant, unsigned char* reached,
                        Chooser& chooser) {
  train::Subject subject;
  subject.enter = [=] { return std::make_unique<MutantScope>(mutant, reached); };
  const program::EngineVariant variant{.subject = &subject};
  return run.program->judge(run.judge, variant, chooser);
}

hunt::CaseResult replayed(const CorpusRun& run, int mutant, unsigned char* reached) {
  program::Source source(run.schedule);
  program::SourceChooser chooser(source);
  return judged(run, mutant, reached, chooser);
}

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

class CorpusMaker {
 public:
  explicit CorpusMaker(const std::function<void(std::size_t)>& say) : say_(say) {}

  Result<void> add_file(const std::string& path) {
    const auto text = read_small_file(path, kFileBytesMax);
    if (!text) return tl::unexpected(text.error());
    const auto entry = hunt::parse_corpus_entry(*text, path);
    if (!entry) return tl::unexpected(entry.error());
    auto runnable = program::RunnableProgram::make(entry->program);
    if (!runnable) return tl::unexpected(runnable.error());
    add({.name = path,
         .program = std::make_shared<hunt::ProgramCase>(std::move(*runnable)),
         .judge = entry->judge,
         .schedule = entry->schedule});
    return {};
  }

  void add_drawn(std::uint64_t number, std::uint64_t seed) {
    hunt::DrawnProgram drawn = hunt::draw_case(program::Source(hunt::case_seed(seed, number)));
    if (!drawn.program) return;
    const std::shared_ptr<hunt::ProgramCase> program = std::move(drawn.program);
    using Kind = hunt::ProgramJudge::Kind;
    for (const Kind kind : {Kind::values, Kind::events}) {
      program::Source source = drawn.source;
      CorpusRun run{
          .name = fmt::format("case {}", number), .program = program, .judge = {.kind = kind}};
      program::SourceChooser chooser(source);
      judged(run, 0, nullptr, chooser);
      const auto values = program::values_of(source.choices());
      const std::size_t drawn_choices = drawn.source.choices().list.size();
      run.schedule.assign(values.begin() + static_cast<std::ptrdiff_t>(drawn_choices),
                          values.end());
      add(std::move(run));
    }
  }

  Corpus take() { return std::move(corpus_); }

 private:
  void add(CorpusRun run) {
    (void)run.program->reference();  // no part of the time
    run.reached.resize(mutant_table().size() + 1);
    const double start = now();
    const hunt::CaseResult result = replayed(run, 0, run.reached.data());
    run.seconds = now() - start;
    if (!result.falsified.empty()) {
      corpus_.dropped.push_back(run.name);
      return;
    }
    corpus_.runs.push_back(std::move(run));
    if (say_) say_(corpus_.runs.size());
  }

  const std::function<void(std::size_t)>& say_;
  Corpus corpus_;
};

}  // namespace

Result<Corpus> make_corpus(const std::vector<std::string>& files, std::uint64_t random_cases,
                           std::uint64_t seed, const std::function<void(std::size_t)>& say) {
  CorpusMaker maker(say);
  for (const std::string& file : files)
    if (auto added = maker.add_file(file); !added) return tl::unexpected(added.error());
  for (std::uint64_t number = 0; number < random_cases; ++number) maker.add_drawn(number, seed);
  return maker.take();
}

std::optional<hunt::Falsified> run_mutant(const CorpusRun& run, int mutant) {
  const hunt::CaseResult result = replayed(run, mutant, nullptr);
  if (result.falsified.empty()) return std::nullopt;
  return result.falsified.front();
}

}  // namespace zeroproof::mutation
