#include "props/mutation/counterexample_shrink.h"

#include <numeric>
#include <optional>

#include "props/minimize.h"
#include "props/train/case_shrink.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"
#include "sim/schedulers/replay.h"

namespace zeroproof::mutation {
namespace {

constexpr std::uint64_t kRandomOrders = 4;  // of a smaller case
constexpr std::uint64_t kRunsMax = 3000;
constexpr std::uint64_t kOrderTests = 200;  // of delta debugging

class Shrinker {
 public:
  Shrinker(const Counterexample& counterexample, const Fault* fault, std::string_view numbers,
           const std::function<bool()>& should_stop)
      : entry_(fault), numbers_(numbers), should_stop_(should_stop) {
    best_.counterexample = counterexample;
  }

  ShrunkCounterexample run() {
    while (shrink_case()) {
    }
    shrink_order();
    return std::move(best_);
  }

 private:
  bool has_to_stop() const { return best_.runs >= kRunsMax || (should_stop_ && should_stop_()); }

  bool shrink_case() {
    for (const train::CaseSpec& spec : train::simpler_cases(best_.counterexample.spec)) {
      if (has_to_stop()) return false;
      const auto choices = failing_order(spec);
      if (!choices) continue;
      best_.counterexample.spec = spec;
      best_.counterexample.choices = *choices;
      return true;
    }
    return false;
  }

  // The first options, what there is, or some random order.
  std::optional<Choices> failing_order(const train::CaseSpec& spec) {
    ReplayScheduler first({}, ReplayFit::lenient);
    ReplayScheduler same(best_.counterexample.choices, ReplayFit::lenient);
    RandomScheduler random(1);
    for (std::uint64_t tried = 0; tried < kRandomOrders + 2; ++tried) {
      if (has_to_stop()) return std::nullopt;
      Scheduler* const scheduler = tried == 0   ? static_cast<Scheduler*>(&first)
                                   : tried == 1 ? static_cast<Scheduler*>(&same)
                                                : &random;
      RecordScheduler record(*scheduler);
      record.new_execution();
      CaseResult result;
      CaseRun case_run(spec);
      judge(case_run, entry_, record, result);
      if (!result.find(numbers_)) {
        if (record.choices().empty()) return std::nullopt;  // there is no other order
        continue;
      }
      Choices choices = record.choices();
      if (is_unmutated(spec, choices)) return choices;
    }
    return std::nullopt;
  }

  void judge(CaseRun& case_run, const Fault* fault, Chooser& chooser, CaseResult& result) {
    ++best_.runs;
    if (best_.counterexample.is_of_events) {
      case_run.judge_events(fault, chooser, result);
    } else {
      case_run.judge_values(fault, chooser, result);
    }
  }

  bool is_unmutated(const train::CaseSpec& spec, const Choices& choices) {
    if (!entry_) return true;
    ++best_.runs;
    return replay({spec, best_.counterexample.is_of_events, choices}, entry_->reference)
        .falsified.empty();
  }

  bool fails_with(const Choices& choices) {
    ++best_.runs;
    const Counterexample counterexample{best_.counterexample.spec,
                                        best_.counterexample.is_of_events, choices};
    return replay(counterexample, entry_).find(numbers_) &&
           is_unmutated(counterexample.spec, choices);
  }

  // Decisions other than the first option are dropped, as many as delta debugging can.
  void shrink_order() {
    Choices& choices = best_.counterexample.choices;
    if (!has_to_stop() && fails_with({})) choices.clear();
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (choices[i] != 0) places.push_back(i);
    const auto with = [&](const KeptParts& kept) {
      Choices some(choices.size(), 0);
      for (const std::size_t part : kept) some[places[part]] = choices[places[part]];
      while (!some.empty() && some.back() == 0) some.pop_back();
      return some;
    };
    KeptParts known(places.size());
    std::iota(known.begin(), known.end(), std::size_t{0});
    const auto fails = [&](const KeptParts& kept) {
      if (kept == known) return true;
      if (has_to_stop() || !fails_with(with(kept))) return false;
      known = kept;
      return true;
    };
    if (!places.empty()) known = minimize_parts(places.size(), fails, {.tests = kOrderTests}).kept;
    choices = with(known);
  }

  const Fault* entry_;
  std::string_view numbers_;
  const std::function<bool()>& should_stop_;
  ShrunkCounterexample best_;
};

}  // namespace

ShrunkCounterexample shrink(const Counterexample& counterexample, const Fault* fault,
                            std::string_view numbers, const std::function<bool()>& should_stop) {
  return Shrinker(counterexample, fault, numbers, should_stop).run();
}

}  // namespace zeroproof::mutation
