#include "sim/zero_epilogue/shrink.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/check.h"
#include "sim/zero_epilogue/schedule_run.h"
#include "sim/zero_epilogue/walker.h"

namespace zeroproof::zero_epilogue {
namespace {

using Events = std::vector<Event>;

// One schedule of one instance that gets simpler. Each candidate is executed once.
class Shrinker {
 public:
  Shrinker(const Settings& settings, Property property, std::uint64_t executions)
      : rules_(settings), property_(property), left_(executions) {}

  // False when the events do not lead to a violation of the property.
  bool begin(const Events& events) {
    best_.clear();
    return attempt(events);
  }

  void run() {
    // Events without information: the first one.
    if (property_ == Property::a5 && attempt({})) return lower();
    Events before;
    do {
      before = best_;
      attempt(cut_short(rules_, property_, best_));
      drop_spans();
      drop_chunks();
      lower();
    } while (best_ != before && left_ != 0);
  }

  const Events& best() const { return best_; }
  std::uint64_t left() const { return left_; }

 private:
  const Settings& settings() const { return rules_.settings(); }

  bool attempt(const Events& wanted) {
    if (left_ == 0) return false;
    --left_;
    const bool is_hang = property_ == Property::a5;
    const ScheduleRun run = run_leniently(rules_, wanted, is_hang ? AtEnd::run_on : AtEnd::stop);
    if (run.violated != property_) return false;
    if (!best_.empty() && !is_simpler(run.events, best_) && !is_hang &&
        run.events.size() > best_.size() + best_.size() / 2) {
      return false;  // slicing will not make up for it
    }
    std::uint64_t executions = 0;
    Events found = canonical(rules_, property_, run.events, executions);
    left_ -= std::min(left_, executions);
    if (!best_.empty() && !is_simpler(found, best_)) return false;
    best_ = std::move(found);
    return true;
  }

  bool attempt_without(const std::function<bool(const Event&, unsigned)>& is_dropped) {
    std::array<unsigned, kRanksMax> passes{};
    Events kept;
    for (const Event& event : best_) {
      if (!is_dropped(event, passes[event.rank])) kept.push_back(event);
      if (event.what.kind == EventKind::finish) ++passes[event.rank];
    }
    return kept.size() != best_.size() && attempt(kept);
  }

  // A pass or a bucket, of all ranks or of one.
  void drop_spans() {
    for (unsigned pass = settings().passes; settings().passes > 1 && pass-- > 0;) {
      attempt_without([&](const Event& event, unsigned at) {
        return at == pass && event.what.kind > EventKind::choose_callback;
      });
    }
    for (unsigned bucket = 0; bucket < settings().buckets(); ++bucket) {
      attempt_without([&](const Event& event, unsigned) { return is_of(bucket, event); });
    }
    for (std::uint8_t rank = 0; rank < settings().ranks; ++rank) {
      attempt_without([&](const Event& event, unsigned) { return event.rank == rank; });
    }
  }

  bool is_of(unsigned bucket, const Event& event) const {
    return event.what.kind == EventKind::hook && event.what.hook / settings().bucket == bucket;
  }

  // Delta debugging; the last event is what violates.
  void drop_chunks() {
    for (std::size_t size = std::max<std::size_t>(best_.size() / 4, 1); size != 0; size /= 2) {
      for (std::size_t at = 0; at < best_.size() && left_ != 0;) {
        Events kept = best_;
        const auto from = kept.begin() + static_cast<std::ptrdiff_t>(at);
        kept.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, kept.size() - at)));
        if (!attempt(kept)) at += size;
      }
    }
  }

  // The counter instead of the callback, hooks in ascending order, low hooks instead of high ones.
  void lower() {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      Events lower = best_;
      EventKind& kind = lower[i].what.kind;
      if (kind == EventKind::choose_callback) {
        kind = EventKind::choose_counter;
      } else if (kind == EventKind::callback) {
        kind = EventKind::counter;
      } else {
        continue;
      }
      attempt(lower);
    }
    for (std::uint8_t rank = 0; rank < settings().ranks; ++rank) {
      for (unsigned pass = 0; pass < settings().passes; ++pass) lower_hooks(rank, pass);
    }
  }

  // Positions of the hooks of one rank and pass.
  std::vector<std::size_t> hooks_of(std::uint8_t rank, unsigned pass) const {
    std::vector<std::size_t> found;
    unsigned at = 0;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const Event& event = best_[i];
      if (event.rank != rank) continue;
      if (event.what.kind == EventKind::hook && at == pass) found.push_back(i);
      if (event.what.kind == EventKind::finish) ++at;
    }
    return found;
  }

  void lower_hooks(std::uint8_t rank, unsigned pass) {
    for (unsigned low = 0; low + 1 < settings().buckets(); ++low) {
      for (unsigned high = low + 1; high < settings().buckets(); ++high) {
        exchange_buckets(rank, pass, low, high);
      }
    }
    const std::vector<std::size_t> hooks = hooks_of(rank, pass);
    Events lower = best_;
    std::vector<std::uint8_t> labels;
    for (const std::size_t i : hooks) labels.push_back(best_[i].what.hook);
    std::sort(labels.begin(), labels.end());
    for (std::size_t i = 0; i < hooks.size(); ++i) lower[hooks[i]].what.hook = labels[i];
    if (lower != best_ && attempt(lower)) return;
    for (std::size_t i = 0; i < hooks.size(); ++i) lower_hook(rank, pass, i);
  }

  void exchange_buckets(std::uint8_t rank, unsigned pass, unsigned low, unsigned high) {
    Events lower = best_;
    const unsigned distance = (high - low) * settings().bucket;
    bool is_lower = false;
    for (const std::size_t i : hooks_of(rank, pass)) {
      std::uint8_t& hook = lower[i].what.hook;
      if (is_of(high, lower[i])) {
        hook = static_cast<std::uint8_t>(hook - distance);
        is_lower = true;
      } else if (is_of(low, lower[i])) {
        if (hook + distance >= settings().hooks) return;
        hook = static_cast<std::uint8_t>(hook + distance);
      }
    }
    if (is_lower) attempt(lower);
  }

  // Exchanges a hook with each lower one that does not come before it.
  void lower_hook(std::uint8_t rank, unsigned pass, std::size_t index) {
    for (std::uint8_t label = 0; left_ != 0; ++label) {
      const std::vector<std::size_t> hooks = hooks_of(rank, pass);
      if (index >= hooks.size() || label >= best_[hooks[index]].what.hook) return;
      Events lower = best_;
      const std::uint8_t high = std::exchange(lower[hooks[index]].what.hook, label);
      for (std::size_t i = 0; i < hooks.size(); ++i) {
        if (i != index && lower[hooks[i]].what.hook == label) lower[hooks[i]].what.hook = high;
      }
      attempt(lower);
    }
  }

  RankRules rules_;
  Property property_;
  std::uint64_t left_;
  Events best_;
};

// What is left of a schedule in a smaller instance.
Events within(const Settings& settings, Events events) {
  std::erase_if(events, [&](const Event& event) {
    return event.rank >= settings.ranks ||
           (event.what.kind == EventKind::hook && event.what.hook >= settings.hooks);
  });
  return events;
}

// Instances that are smaller in one way, the smallest first.
std::vector<Settings> smaller_than(const Settings& settings) {
  std::vector<Settings> all;
  const auto add = [&](Settings one) {
    for (const std::uint32_t phase : {std::uint32_t{0}, one.first_phase}) {
      one.first_phase = phase <= one.hooks ? phase : 0;
      if (one != settings) all.push_back(one);
    }
  };
  const auto lower = [&](std::uint32_t Settings::*member) {
    for (std::uint32_t value = 1; value < settings.*member; ++value) {
      Settings one = settings;
      one.*member = value;
      add(one);
    }
  };
  lower(&Settings::passes);
  lower(&Settings::ranks);
  lower(&Settings::hooks);
  Settings plain = settings;
  plain.order = HookOrder::any;
  plain.leaves = Settings{}.leaves;
  plain.first_phase = 0;
  add(plain);
  plain = settings;
  plain.is_late = false;
  add(plain);
  lower(&Settings::bucket);
  return all;
}

class SettingsShrinker {
 public:
  SettingsShrinker(Settings settings, Property property, std::uint64_t executions)
      : settings_(settings), property_(property), left_(executions) {}

  void run(Events& events) {
    while (step(events)) {
    }
  }
  const Settings& settings() const { return settings_; }
  std::uint64_t left() const { return left_; }

 private:
  bool step(Events& events) {
    for (const Settings& smaller : smaller_than(settings_)) {
      if (left_ == 0) return false;
      Shrinker shrinker(smaller, property_, left_);
      const bool fails = shrinker.begin(within(smaller, events)) || begin_anew(shrinker, smaller);
      if (fails) shrinker.run();
      left_ = shrinker.left();
      if (!fails || shrinker.best().size() > events.size()) continue;
      settings_ = smaller;
      events = shrinker.best();
      return true;
    }
    return false;
  }

  // With a few random schedules of the smaller instance.
  bool begin_anew(Shrinker& shrinker, const Settings& smaller) const {
    constexpr std::uint64_t kTries = 8;
    for (std::uint64_t seed = 0; seed < kTries && shrinker.left() != 0; ++seed) {
      const auto found = walk(smaller, {.seed = seed, .schedules = 1});
      if (found->first == property_ && shrinker.begin(found->failing)) return true;
    }
    return false;
  }

  Settings settings_;
  Property property_;
  std::uint64_t left_;
};

}  // namespace

Shrunk shrink(const Settings& settings, const Counterexample& failing,
              const ShrinkOptions& options) {
  Shrinker shrinker(settings, failing.property, options.executions);
  const bool fails = shrinker.begin(failing.events);
  ZP_CHECK(fails, "a schedule to shrink does not fail again");
  shrinker.run();
  Shrunk result{settings, {failing.property, shrinker.best()}, 0};
  std::uint64_t left = shrinker.left();
  if (options.shrinks_settings) {
    SettingsShrinker smaller(settings, failing.property, left);
    smaller.run(result.counterexample.events);
    result.settings = smaller.settings();
    left = smaller.left();
  }
  result.executions = options.executions - left;
  return result;
}

}  // namespace zeroproof::zero_epilogue
