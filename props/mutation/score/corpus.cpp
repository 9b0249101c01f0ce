#include "props/mutation/score/corpus.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/files/small_file.h"
#include "props/mutation/score/active_mutant.h"
#include "props/mutation/score/mutant_table.h"
#include "props/train/case_draw.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"
#include "sim/schedulers/replay.h"

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

CaseResult judged(const CorpusRun& run, int mutant, unsigned char* reached, Chooser& chooser) {
  Fault fault{.id = "mutant"};
  fault.subject.enter = [=] { return std::make_unique<MutantScope>(mutant, reached); };
  CaseResult result;
  if (run.is_of_events) {
    run.case_run->judge_events(&fault, chooser, result);
  } else {
    run.case_run->judge_values(&fault, chooser, result);
  }
  return result;
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
    const auto rows = nlohmann::json::parse(*text, nullptr, false);
    if (!rows.is_object())
      return fail(ErrorCode::usage, fmt::format("{}: no object of counterexamples", path));
    for (const auto& [id, row] : rows.items()) {
      if (!row.contains("schedule")) continue;
      const auto token = read_token(row.at("schedule").get<std::string>(), id);
      if (!token) return tl::unexpected(token.error());
      const Counterexample& one = token->counterexample;
      ReplayScheduler scheduler(one.choices, ReplayFit::lenient);
      add({.name = id,
           .case_run = std::make_shared<CaseRun>(one.spec),
           .is_of_events = one.is_of_events},
          scheduler);
    }
    return {};
  }

  void add_drawn(std::uint64_t number, std::uint64_t seed) {
    const auto case_run = std::make_shared<CaseRun>(train::draw_case(seed));
    for (const bool is_of_events : {false, true}) {
      RandomScheduler random(is_of_events ? ~seed : seed);
      add({.name = fmt::format("case {}", number),
           .case_run = case_run,
           .is_of_events = is_of_events},
          random);
    }
  }

  Corpus take() { return std::move(corpus_); }

 private:
  // Twice: the first run makes the baseline, which is kept, and the choices.
  void add(CorpusRun run, Scheduler& scheduler) {
    run.reached.resize(mutant_table().size() + 1);
    RecordScheduler record(scheduler);
    record.new_execution();
    judged(run, 0, nullptr, record);
    run.choices = record.choices();
    ReplayScheduler again(run.choices, ReplayFit::lenient);
    again.new_execution();
    const double start = now();
    const CaseResult result = judged(run, 0, run.reached.data(), again);
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
  for (std::uint64_t number = 0; number < random_cases; ++number)
    maker.add_drawn(number, seed * 1'000'003 + number);
  return maker.take();
}

std::optional<Falsified> run_mutant(const CorpusRun& run, int mutant) {
  ReplayScheduler scheduler(run.choices, ReplayFit::lenient);
  scheduler.new_execution();
  const CaseResult result = judged(run, mutant, nullptr, scheduler);
  if (result.falsified.empty()) return std::nullopt;
  return result.falsified.front();
}

}  // namespace zeroproof::mutation
