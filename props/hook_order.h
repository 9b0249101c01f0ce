#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/explorer.h"
#include "sim/hook_order/property.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// `explore hook_order`: real engines under a search, at the level of hooks and collectives.
struct HookOrderOptions {
  std::vector<std::string> words;  // "P=2", "stage=2", "quirks=h4", ...
  std::string scheduler = "exhaustive";
  bool is_reduced = true;
  std::uint64_t seed = 0;
  std::uint64_t executions = 10'000;  // of the sampling schedulers
  std::function<StopRequest()> should_stop = {};
  std::function<void(const ExploreProgress&)> on_progress = {};
};

struct HookOrderFinding {
  hook_order::Property property = hook_order::Property::none;
  std::string explanation;
  std::vector<std::string> moves;  // "r0.p3", "r0.end", "r1.reduction"
};

struct HookOrderReport {
  std::string settings;
  std::string planted;  // the defect in words; empty for none
  std::string scheduler;
  bool is_reduced = false;
  bool has_exhausted = false;  // every order is covered
  std::optional<std::uint64_t> states;
  std::optional<std::uint64_t> transitions;
  std::optional<double> bytes_per_state;
  std::uint64_t executions = 0;
  std::uint64_t events = 0;                // seam calls and decisions of all executions
  std::vector<HookOrderFinding> findings;  // by property
  std::string divergence;
};

// Code usage for wrong words.
Result<HookOrderReport> explore_hook_order(const HookOrderOptions& options);

// `seconds` comes from the caller: only the command reads a clock.
std::string hook_order_json(const HookOrderReport& report, std::uint64_t seed, double seconds);
std::string hook_order_text(const HookOrderReport& report, double seconds);

}  // namespace zeroproof
