#include "props/mutation/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "props/mutation/counterexample_shrink.h"
#include "props/train/case_draw.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"

namespace zeroproof::mutation {
namespace {

constexpr std::size_t kUnmutatedFindingsMax = 20;
constexpr std::uint64_t kQuickCases = 4000;  // of one fault
// The same. Cases decide, however slow the machine is, unless it is very slow.
constexpr std::int64_t kQuickTimeNs = 180'000'000'000;
constexpr unsigned kQuickWorkers = 2;
constexpr std::uint64_t kMatrixCases = 100;  // of one fault, from the one that found it on
constexpr std::uint64_t kPoolMax = 4096;     // cases whose baselines are kept
constexpr int kOtherCases = 5;               // of a fault whose first one stays too large

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t number) {
  return seed * 1'000'003 + number;
}

// The orders of the two runs of one case, with what they chose.
class CaseOrders {
 public:
  explicit CaseOrders(std::uint64_t seed)
      : schedulers_{RandomScheduler(seed), RandomScheduler(~seed)} {
    for (RecordScheduler& record : records_) record.new_execution();
  }
  Chooser& operator()(int run) { return records_[run]; }
  const Choices& choices(int run) const { return records_[run].choices(); }

 private:
  RandomScheduler schedulers_[2];
  RecordScheduler records_[2] = {RecordScheduler(schedulers_[0]), RecordScheduler(schedulers_[1])};
};

// The cases of one worker, in the order of their numbers: equal for all faults, so that each
// baseline runs once.
class CasePool {
 public:
  CasePool(std::uint64_t seed, const std::set<std::string>& without)
      : seed_(seed), without_(without) {}

  CaseRun& at(std::uint64_t number) {
    if (number >= kPoolMax) {
      last_ = make(number);
      return *last_;
    }
    if (pool_.size() <= number) pool_.resize(number + 1);
    if (!pool_[number]) pool_[number] = make(number);
    return *pool_[number];
  }

 private:
  std::unique_ptr<CaseRun> make(std::uint64_t number) const {
    return std::make_unique<CaseRun>(train::draw_case(case_seed(seed_, number)), without_);
  }

  std::uint64_t seed_;
  const std::set<std::string>& without_;
  std::vector<std::unique_ptr<CaseRun>> pool_;
  std::unique_ptr<CaseRun> last_;
};

class Hunter {
 public:
  Hunter(const HuntOptions& options, const HuntWatch& watch)
      : options_(options), watch_(watch), pool_(options.seed, options.without) {}

  Found hunt(const Fault& fault) {
    Found found{.fault = &fault};
    const std::int64_t start = watch_.now_ns();
    for (std::uint64_t number = 0; number < options_.cases_max; ++number) {
      if (is_over(start)) break;
      if (!try_case(fault, number, found)) continue;
      found.seconds = seconds_since(start);
      finish(found);
      if (is_too_large(found)) shrink_elsewhere(number + 1, start, found);
      return found;
    }
    found.seconds = seconds_since(start);
    return found;
  }

  // `tell`: before each case, and with a finding that is new.
  void run_unmutated(std::uint64_t first, std::uint64_t stride, UnmutatedRun& unmutated,
                     const std::function<void(const std::string* finding)>& tell) {
    const std::int64_t start = watch_.now_ns();
    for (std::uint64_t number = first; !has_to_stop(); number += stride) {
      const bool is_enough = options_.unmutated_time_ns > 0
                                 ? watch_.now_ns() - start > options_.unmutated_time_ns
                                 : number >= options_.unmutated_cases;
      if (is_enough || unmutated.findings.size() >= kUnmutatedFindingsMax) break;
      tell(nullptr);
      CaseRun& case_run = pool_.at(number);
      CaseOrders orders(case_seed(options_.seed, number));
      const CaseResult result = case_run.run(nullptr, CaseRun::Depth::all,
                                             [&](int run) -> Chooser& { return orders(run); });
      ++unmutated.cases;
      unmutated.executions += result.executions;
      if (!result.falsified.empty() && add_finding(smallest(number), unmutated))
        tell(&unmutated.findings.back());
    }
    unmutated.seconds = seconds_since(start);
  }

 private:
  bool has_to_stop() const { return watch_.should_stop && watch_.should_stop(); }
  // The hunt of a fault that began then.
  bool is_over(std::int64_t start) const {
    return has_to_stop() || watch_.now_ns() - start > options_.time_max_ns;
  }
  double seconds_since(std::int64_t start) const {
    return static_cast<double>(watch_.now_ns() - start) * 1e-9;
  }

  // One line for all cases that come to the same smallest one; whether it is new.
  static bool add_finding(std::string finding, UnmutatedRun& unmutated) {
    const auto what = [](const std::string& line) { return line.substr(line.find(':')); };
    const auto is_it = [&](const std::string& known) { return what(known) == what(finding); };
    if (std::ranges::any_of(unmutated.findings, is_it)) return false;
    unmutated.findings.push_back(std::move(finding));
    return true;
  }

  // The first finding of a case on the unmutated engine, minimised, with the word that replays it.
  std::string smallest(std::uint64_t number) {
    CaseRun& case_run = pool_.at(number);
    CaseOrders orders(case_seed(options_.seed, number));
    const CaseResult result = case_run.run(nullptr, CaseRun::Depth::first,
                                           [&](int run) -> Chooser& { return orders(run); });
    const bool is_of_events = result.executions == 2;
    const std::string_view property = result.falsified.front().property->number;
    const Counterexample counterexample{case_run.spec(), is_of_events,
                                        orders.choices(is_of_events ? 1 : 0)};
    const Counterexample small =
        shrink(counterexample, nullptr, property, watch_.should_stop).counterexample;
    const CaseResult again = replay(small, nullptr);
    const Falsified* const falsified = again.find(property);
    return fmt::format("case {}: {} {}: {}; {}; --replay {}", number, property,
                       result.falsified.front().property->id,
                       falsified ? falsified->text : "does not show again",
                       train::case_json(small.spec), token_of(small, canary().id));
  }

  bool try_case(const Fault& fault, std::uint64_t number, Found& found) {
    CaseRun& case_run = pool_.at(number);
    CaseOrders orders(case_seed(options_.seed, number));
    const CaseResult result = case_run.run(&fault, CaseRun::Depth::first,
                                           [&](int run) -> Chooser& { return orders(run); });
    found.executions += result.executions;
    const Falsified* const falsified =
        result.find(options_.without.empty() ? fault.properties : std::string_view());
    if (!falsified) return false;
    const bool is_of_events = result.executions == 2;
    Counterexample counterexample{case_run.spec(), is_of_events,
                                  orders.choices(is_of_events ? 1 : 0)};
    // A finding that is not the fault's is the harness's or the engine's.
    if (!replay(counterexample, fault.reference).falsified.empty()) return false;
    found.first_case = number;
    found.property = falsified->property;
    found.counterexample = std::move(counterexample);
    return true;
  }

  void finish(Found& found) {
    if (options_.minimizes) {
      ShrunkCounterexample shrunk =
          shrink(found.counterexample, found.fault, found.property->number, watch_.should_stop);
      found.counterexample = std::move(shrunk.counterexample);
      found.shrink_runs = shrunk.runs;
    }
    const CaseResult again = replay(found.counterexample, found.fault);
    const Falsified* const falsified = again.find(found.property->number);
    found.replay_ok = falsified != nullptr;
    if (falsified) found.text = falsified->text;
    found.events = again.events;
    found.unmutated_replay_ok =
        replay(found.counterexample, found.fault->reference).falsified.empty();
    found.is_found = found.replay_ok && found.unmutated_replay_ok;
    for (const Falsified& one : again.falsified) found.falsified.emplace(one.property->number);
    if (!options_.has_matrix) return;
    Counterexample other = found.counterexample;
    other.is_of_events = !other.is_of_events;
    for (const Falsified& one : replay(other, found.fault).falsified)
      found.falsified.emplace(one.property->number);
    for (std::uint64_t more = 0; more < kMatrixCases && !has_to_stop(); ++more)
      add_all_falsified(found.first_case + more, found);
  }

  // Larger than the catalogue's, and nobody says why.
  bool is_too_large(const Found& found) const {
    const bool is_measured = found.fault != &canary() && found.fault->is_of_catalogue();
    return options_.minimizes && is_measured && found.is_found && found.fault->larger.empty() &&
           !is_within(found.counterexample, found.fault->row());
  }

  // What another case shows of it may get smaller. When it was found is told as it was.
  void shrink_elsewhere(std::uint64_t first, std::int64_t start, Found& found) {
    int tries = 0;
    for (std::uint64_t number = first; number < options_.cases_max && tries < kOtherCases;
         ++number) {
      if (is_over(start)) return;
      Found other{.fault = found.fault};
      if (!try_case(*found.fault, number, other)) continue;
      ++tries;
      other.executions = found.executions;
      other.seconds = found.seconds;
      finish(other);
      if (!other.is_found || is_too_large(other)) continue;
      found = std::move(other);
      return;
    }
  }

  // What the case falsifies in both runs, if it holds on the unmutated engine.
  void add_all_falsified(std::uint64_t number, Found& found) {
    CaseRun& case_run = pool_.at(number);
    const auto judge = [&](const Fault* fault) {
      CaseOrders orders(case_seed(options_.seed, number));
      return case_run
          .run(fault, CaseRun::Depth::all, [&](int run) -> Chooser& { return orders(run); })
          .falsified;
    };
    const std::vector<Falsified> falsified = judge(found.fault);
    if (falsified.empty() || !judge(found.fault->reference).empty()) return;
    for (const Falsified& one : falsified) found.falsified.emplace(one.property->number);
  }

  const HuntOptions& options_;
  const HuntWatch& watch_;
  CasePool pool_;
};

// What all workers do, and what came of it.
class Hunt {
 public:
  Hunt(const std::vector<const Fault*>& faults, const HuntOptions& options, const HuntWatch& watch)
      : entries_(faults), watch_(watch) {
    report_.options = options;
    report_.found.resize(faults.size());
    unmutated_.resize(options.workers);
  }

  HuntReport run() {
    std::vector<std::exception_ptr> errors(report_.options.workers);
    const auto work = [&](std::uint64_t worker) {
      try {
        run_worker(worker);
      } catch (...) {
        errors[worker] = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t worker = 1; worker < report_.options.workers; ++worker)
        threads.emplace_back(work, worker);
      work(0);
    }
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
    for (const UnmutatedRun& part : unmutated_) {
      report_.unmutated.cases += part.cases;
      report_.unmutated.executions += part.executions;
      report_.unmutated.seconds = std::max(report_.unmutated.seconds, part.seconds);
      report_.unmutated.findings.insert(report_.unmutated.findings.end(), part.findings.begin(),
                                        part.findings.end());
    }
    report_.is_interrupted = watch_.should_stop && watch_.should_stop();
    return std::move(report_);
  }

 private:
  void run_worker(std::uint64_t worker) {
    Hunter hunter(report_.options, watch_);
    if (worker == 0) report_.canary = hunter.hunt(canary());
    for (std::size_t next = next_++; next < entries_.size(); next = next_++) {
      const Fault& fault = *entries_[next];
      report_.found[next].fault = &fault;
      if (!fault.is_modelled()) continue;
      report_.found[next] = hunter.hunt(fault);
      executions_ += report_.found[next].executions;
      tell(std::string(fault.id), nullptr);
    }
    UnmutatedRun& unmutated = unmutated_[worker];
    std::uint64_t told = 0;
    hunter.run_unmutated(
        worker, report_.options.workers, unmutated, [&](const std::string* finding) {
          executions_ += unmutated.executions - std::exchange(told, unmutated.executions);
          tell("unmutated", finding);
        });
  }

  // One worker at a time.
  void tell(const std::string& step, const std::string* finding) {
    const std::scoped_lock lock(telling_);
    if (watch_.on_progress) watch_.on_progress(step, executions_);
    if (finding && watch_.on_unmutated_finding) watch_.on_unmutated_finding(*finding);
  }

  const std::vector<const Fault*>& entries_;
  const HuntWatch& watch_;
  HuntReport report_;
  std::vector<UnmutatedRun> unmutated_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uint64_t> executions_ = 0;
  std::mutex telling_;
};

}  // namespace

std::size_t HuntReport::count_found() const {
  return static_cast<std::size_t>(std::ranges::count_if(found, &Found::is_found));
}

bool HuntReport::is_good() const {
  const auto is_right = [](const Found& one) { return one.is_found || !one.fault->is_modelled(); };
  return canary.is_found && unmutated.is_clean() && std::ranges::all_of(found, is_right);
}

std::vector<const Fault*> quick_set() {
  std::vector<const Fault*> chosen;
  for (const Fault& fault : catalogue_faults())
    if (fault.is_modelled() && fault.row().tier == 1) chosen.push_back(&fault);
  return chosen;
}

HuntOptions quick_options() {
  HuntOptions options;
  options.cases_max = kQuickCases;
  options.time_max_ns = kQuickTimeNs;
  options.minimizes = false;
  options.workers = std::clamp(std::thread::hardware_concurrency(), 1U, kQuickWorkers);
  return options;
}

HuntReport hunt(const std::vector<const Fault*>& faults, const HuntOptions& options,
                const HuntWatch& watch) {
  return Hunt(faults, options, watch).run();
}

}  // namespace zeroproof::mutation
