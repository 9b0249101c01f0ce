#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/explorer.h"
#include "sim/fingerprint.h"

namespace zeroproof::toy {

// Events 0 ... n-1; event e needs every event in needs[e] first. Which one runs is a choice.
struct Poset {
  std::vector<std::vector<std::size_t>> needs;

  std::size_t size() const { return needs.size(); }
};

inline Poset antichain(std::size_t size) {
  return {std::vector<std::vector<std::size_t>>(size)};
}

inline Poset chain(std::size_t size) {
  Poset poset = antichain(size);
  for (std::size_t event = 1; event < size; ++event) poset.needs[event] = {event - 1};
  return poset;
}

// Which states a world shows to the chooser.
enum class Shows {
  choices,      // only those with two or more options
  every_state,  // also those with one option, and the final state
};

// Asks which of `ready` comes next.
inline std::size_t ask(Chooser& chooser, const std::vector<std::size_t>& ready,
                       const Fingerprint& state, Shows shows) {
  if (ready.size() == 1 && shows == Shows::choices) return 0;
  std::vector<std::string> names;
  for (const std::size_t event : ready) names.push_back("e" + std::to_string(event));
  const std::vector<std::string_view> options(names.begin(), names.end());
  return chooser.choose({"toy.ready", options, state});
}

// Runs a poset. A monitor watches the order: property e is falsified when event e ran although
// `trigger[e]` had not run yet and event 0 had. Its verdicts are part of the fingerprint.
struct MonitoredPoset {
  Poset poset;
  std::vector<std::size_t> trigger;
  Shows shows = Shows::choices;

  Outcome operator()(Chooser& chooser) const {
    std::vector<bool> has_run(poset.size());
    std::vector<Falsified> falsified;
    Outcome outcome;
    for (std::uint64_t step = 0; step < poset.size(); ++step) {
      const std::vector<std::size_t> ready = ready_events(has_run);
      const Fingerprint state = fingerprint(has_run, falsified);
      const std::size_t event = ready[ask(chooser, ready, state, shows)];
      if (event < trigger.size() && !has_run[trigger[event]] && has_run[0]) {
        falsified.push_back({static_cast<std::uint32_t>(event), step + 1});
      }
      has_run[event] = true;
      outcome.order += (step == 0 ? "" : " ") + std::to_string(event);
    }
    outcome.falsified = falsified;
    if (shows == Shows::every_state) outcome.final_state = fingerprint(has_run, falsified);
    return outcome;
  }

 private:
  std::vector<std::size_t> ready_events(const std::vector<bool>& has_run) const {
    std::vector<std::size_t> ready;
    for (std::size_t event = 0; event < poset.size(); ++event) {
      const auto& needs = poset.needs[event];
      const bool is_ready =
          std::all_of(needs.begin(), needs.end(), [&](std::size_t need) { return has_run[need]; });
      if (!has_run[event] && is_ready) ready.push_back(event);
    }
    return ready;
  }

  static Fingerprint fingerprint(const std::vector<bool>& has_run,
                                 const std::vector<Falsified>& falsified) {
    StateBytes bytes;
    for (const bool has : has_run) bytes.add(has);
    for (const Falsified& f : falsified) bytes.add(f.property).add(f.events);
    return bytes.fingerprint();
  }
};

// Two threads add one to a counter by a load and a store. Property 0: the counter ends at 2.
inline Outcome lost_update(Chooser& chooser) {
  int counter = 0;
  int loaded[2] = {0, 0};
  int position[2] = {0, 0};  // 0: load next, 1: store next, 2: done
  Outcome outcome;
  for (std::uint64_t step = 0; step < 4; ++step) {
    std::vector<std::size_t> ready;
    for (std::size_t thread = 0; thread < 2; ++thread) {
      if (position[thread] < 2) ready.push_back(thread);
    }
    StateBytes bytes;
    bytes.add(counter);
    for (const int thread : {0, 1}) bytes.add(loaded[thread]).add(position[thread]);
    const std::size_t thread = ready[ask(chooser, ready, bytes.fingerprint(), Shows::choices)];
    if (position[thread]++ == 0) {
      loaded[thread] = counter;
    } else {
      counter = loaded[thread] + 1;
    }
    outcome.order += std::to_string(thread);
  }
  if (counter != 2) outcome.falsified.push_back({0, 4});
  return outcome;
}

}  // namespace zeroproof::toy
