#include "props/museum/hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "props/museum/specimen_shrink.h"
#include "props/train/case_draw.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/record.h"

namespace zeroproof::museum {
namespace {

constexpr std::size_t kHealthyFindingsMax = 20;
constexpr std::uint64_t kQuickCases = 4000;  // of one entry
// The same. Cases decide, however slow the machine is, unless it is very slow.
constexpr std::int64_t kQuickTimeNs = 180'000'000'000;
constexpr unsigned kQuickWorkers = 2;
constexpr std::uint64_t kMatrixCases = 100;  // of one entry, from the one that found it on
constexpr std::uint64_t kPoolMax = 4096;     // cases whose baselines are kept
constexpr int kOtherCases = 5;               // of an entry whose first one stays too large

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

// The cases of one worker, in the order of their numbers: equal for all entries, so that each
// baseline runs once.
class CasePool {
 public:
  CasePool(std::uint64_t seed, const std::set<std::string>& without)
      : seed_(seed), without_(without) {}

  Trial& at(std::uint64_t number) {
    if (number >= kPoolMax) {
      last_ = make(number);
      return *last_;
    }
    if (pool_.size() <= number) pool_.resize(number + 1);
    if (!pool_[number]) pool_[number] = make(number);
    return *pool_[number];
  }

 private:
  std::unique_ptr<Trial> make(std::uint64_t number) const {
    return std::make_unique<Trial>(train::draw_case(case_seed(seed_, number)), without_);
  }

  std::uint64_t seed_;
  const std::set<std::string>& without_;
  std::vector<std::unique_ptr<Trial>> pool_;
  std::unique_ptr<Trial> last_;
};

class Hunter {
 public:
  Hunter(const HuntOptions& options, const HuntWatch& watch)
      : options_(options), watch_(watch), pool_(options.seed, options.without) {}

  Found hunt(const Entry& entry) {
    Found found{.entry = &entry};
    const std::int64_t start = watch_.now_ns();
    for (std::uint64_t number = 0; number < options_.cases_max; ++number) {
      if (is_over(start)) break;
      if (!try_case(entry, number, found)) continue;
      found.seconds = seconds_since(start);
      finish(found);
      if (is_too_large(found)) shrink_elsewhere(number + 1, start, found);
      return found;
    }
    found.seconds = seconds_since(start);
    return found;
  }

  // `tell`: before each case, and with a finding that is new.
  void run_healthy(std::uint64_t first, std::uint64_t stride, HealthyRun& healthy,
                   const std::function<void(const std::string* finding)>& tell) {
    const std::int64_t start = watch_.now_ns();
    for (std::uint64_t number = first; !has_to_stop(); number += stride) {
      const bool is_enough = options_.healthy_time_ns > 0
                                 ? watch_.now_ns() - start > options_.healthy_time_ns
                                 : number >= options_.healthy_cases;
      if (is_enough || healthy.findings.size() >= kHealthyFindingsMax) break;
      tell(nullptr);
      Trial& trial = pool_.at(number);
      CaseOrders orders(case_seed(options_.seed, number));
      const TrialResult result =
          trial.run(nullptr, Trial::Depth::all, [&](int run) -> Chooser& { return orders(run); });
      ++healthy.cases;
      healthy.executions += result.executions;
      if (!result.falsified.empty() && add_finding(smallest(number), healthy))
        tell(&healthy.findings.back());
    }
    healthy.seconds = seconds_since(start);
  }

 private:
  bool has_to_stop() const { return watch_.should_stop && watch_.should_stop(); }
  // The hunt of an entry that began then.
  bool is_over(std::int64_t start) const {
    return has_to_stop() || watch_.now_ns() - start > options_.time_max_ns;
  }
  double seconds_since(std::int64_t start) const {
    return static_cast<double>(watch_.now_ns() - start) * 1e-9;
  }

  // One line for all cases that come to the same smallest one; whether it is new.
  static bool add_finding(std::string finding, HealthyRun& healthy) {
    const auto what = [](const std::string& line) { return line.substr(line.find(':')); };
    const auto is_it = [&](const std::string& known) { return what(known) == what(finding); };
    if (std::ranges::any_of(healthy.findings, is_it)) return false;
    healthy.findings.push_back(std::move(finding));
    return true;
  }

  // The first finding of a case on the healthy engine, minimised, with the word that replays it.
  std::string smallest(std::uint64_t number) {
    Trial& trial = pool_.at(number);
    CaseOrders orders(case_seed(options_.seed, number));
    const TrialResult result =
        trial.run(nullptr, Trial::Depth::first, [&](int run) -> Chooser& { return orders(run); });
    const bool is_of_events = result.executions == 2;
    const std::string_view property = result.falsified.front().property->number;
    const Specimen specimen{trial.spec(), is_of_events, orders.choices(is_of_events ? 1 : 0)};
    const Specimen small = shrink(specimen, nullptr, property, watch_.should_stop).specimen;
    const TrialResult again = replay(small, nullptr);
    const Falsified* const falsified = again.find(property);
    return fmt::format("case {}: {} {}: {}; {}; --replay {}", number, property,
                       result.falsified.front().property->id,
                       falsified ? falsified->text : "does not show again",
                       train::case_json(small.spec), token_of(small, canary().id));
  }

  bool try_case(const Entry& entry, std::uint64_t number, Found& found) {
    Trial& trial = pool_.at(number);
    CaseOrders orders(case_seed(options_.seed, number));
    const TrialResult result =
        trial.run(&entry, Trial::Depth::first, [&](int run) -> Chooser& { return orders(run); });
    found.executions += result.executions;
    const Falsified* const falsified =
        result.find(options_.without.empty() ? entry.properties : std::string_view());
    if (!falsified) return false;
    const bool is_of_events = result.executions == 2;
    Specimen specimen{trial.spec(), is_of_events, orders.choices(is_of_events ? 1 : 0)};
    // A finding that is not the fault's is the harness's or the engine's.
    if (!replay(specimen, entry.reference).falsified.empty()) return false;
    found.first_case = number;
    found.property = falsified->property;
    found.specimen = std::move(specimen);
    return true;
  }

  void finish(Found& found) {
    if (options_.minimizes) {
      ShrunkSpecimen shrunk =
          shrink(found.specimen, found.entry, found.property->number, watch_.should_stop);
      found.specimen = std::move(shrunk.specimen);
      found.shrink_runs = shrunk.runs;
    }
    const TrialResult again = replay(found.specimen, found.entry);
    const Falsified* const falsified = again.find(found.property->number);
    found.replay_ok = falsified != nullptr;
    if (falsified) found.text = falsified->text;
    found.events = again.events;
    found.healthy_replay_ok = replay(found.specimen, found.entry->reference).falsified.empty();
    found.is_found = found.replay_ok && found.healthy_replay_ok;
    for (const Falsified& one : again.falsified) found.falsified.emplace(one.property->number);
    if (!options_.has_matrix) return;
    Specimen other = found.specimen;
    other.is_of_events = !other.is_of_events;
    for (const Falsified& one : replay(other, found.entry).falsified)
      found.falsified.emplace(one.property->number);
    for (std::uint64_t more = 0; more < kMatrixCases && !has_to_stop(); ++more)
      add_all_falsified(found.first_case + more, found);
  }

  // Larger than the catalogue's, and nobody says why.
  bool is_too_large(const Found& found) const {
    const bool is_measured = found.entry != &canary() && found.entry->is_of_catalogue();
    return options_.minimizes && is_measured && found.is_found && found.entry->larger.empty() &&
           !is_within(found.specimen, found.entry->row());
  }

  // What another case shows of it may get smaller. When it was found is told as it was.
  void shrink_elsewhere(std::uint64_t first, std::int64_t start, Found& found) {
    int tries = 0;
    for (std::uint64_t number = first; number < options_.cases_max && tries < kOtherCases;
         ++number) {
      if (is_over(start)) return;
      Found other{.entry = found.entry};
      if (!try_case(*found.entry, number, other)) continue;
      ++tries;
      other.executions = found.executions;
      other.seconds = found.seconds;
      finish(other);
      if (!other.is_found || is_too_large(other)) continue;
      found = std::move(other);
      return;
    }
  }

  // What the case falsifies in both runs, if it holds on the healthy engine.
  void add_all_falsified(std::uint64_t number, Found& found) {
    Trial& trial = pool_.at(number);
    const auto judge = [&](const Entry* entry) {
      CaseOrders orders(case_seed(options_.seed, number));
      return trial.run(entry, Trial::Depth::all, [&](int run) -> Chooser& { return orders(run); })
          .falsified;
    };
    const std::vector<Falsified> falsified = judge(found.entry);
    if (falsified.empty() || !judge(found.entry->reference).empty()) return;
    for (const Falsified& one : falsified) found.falsified.emplace(one.property->number);
  }

  const HuntOptions& options_;
  const HuntWatch& watch_;
  CasePool pool_;
};

// What all workers do, and what came of it.
class Hunt {
 public:
  Hunt(const std::vector<const Entry*>& entries, const HuntOptions& options, const HuntWatch& watch)
      : entries_(entries), watch_(watch) {
    report_.options = options;
    report_.found.resize(entries.size());
    healthy_.resize(options.workers);
  }

  MuseumReport run() {
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
    for (const HealthyRun& part : healthy_) {
      report_.healthy.cases += part.cases;
      report_.healthy.executions += part.executions;
      report_.healthy.seconds = std::max(report_.healthy.seconds, part.seconds);
      report_.healthy.findings.insert(report_.healthy.findings.end(), part.findings.begin(),
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
      const Entry& entry = *entries_[next];
      report_.found[next].entry = &entry;
      if (!entry.is_modelled()) continue;
      report_.found[next] = hunter.hunt(entry);
      executions_ += report_.found[next].executions;
      tell(std::string(entry.id), nullptr);
    }
    HealthyRun& healthy = healthy_[worker];
    std::uint64_t told = 0;
    hunter.run_healthy(worker, report_.options.workers, healthy, [&](const std::string* finding) {
      executions_ += healthy.executions - std::exchange(told, healthy.executions);
      tell("healthy", finding);
    });
  }

  // One worker at a time.
  void tell(const std::string& step, const std::string* finding) {
    const std::scoped_lock lock(telling_);
    if (watch_.on_progress) watch_.on_progress(step, executions_);
    if (finding && watch_.on_healthy_finding) watch_.on_healthy_finding(*finding);
  }

  const std::vector<const Entry*>& entries_;
  const HuntWatch& watch_;
  MuseumReport report_;
  std::vector<HealthyRun> healthy_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::uint64_t> executions_ = 0;
  std::mutex telling_;
};

}  // namespace

std::size_t MuseumReport::count_found() const {
  return static_cast<std::size_t>(std::ranges::count_if(found, &Found::is_found));
}

bool MuseumReport::is_good() const {
  const auto is_right = [](const Found& one) { return one.is_found || !one.entry->is_modelled(); };
  return canary.is_found && healthy.is_clean() && std::ranges::all_of(found, is_right);
}

std::vector<const Entry*> quick_set() {
  std::vector<const Entry*> chosen;
  for (const Entry& entry : entries())
    if (entry.is_modelled() && entry.row().tier == 1) chosen.push_back(&entry);
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

MuseumReport hunt(const std::vector<const Entry*>& entries, const HuntOptions& options,
                  const HuntWatch& watch) {
  return Hunt(entries, options, watch).run();
}

}  // namespace zeroproof::museum
