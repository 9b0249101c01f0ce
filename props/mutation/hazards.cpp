// Upstream's hazards (docs/reference/hazards.md) as faults: a quirk under a policy, against the
// policy alone.
#include <array>
#include <deque>

#include "props/mutation/fault.h"
#include "zeroproof/engine/quirks.h"

namespace zeroproof::mutation {
namespace {

// The rows as strings, which the faults point into.
struct Hazard {
  std::string id;
  std::string quirks;
  std::string quirks_below;  // of the reference
  Fault reference;
};

// Why no program shows it; docs/reference/hazards.md has the command or the test that does.
std::string_view reason_of(Quirk quirk) {
  switch (quirk) {
    case Quirk::h2_callback_once_per_forward:
      return "the policy is so by itself";
    case Quirk::h11_module_stack_leaks:
      return "shows in the stack alone, which no judge sees";
    case Quirk::h18_no_sequence_correction:
      return "what every row is compared with has it, too";
    case Quirk::h20_any_forward_resets_step:
      return "the policy is so by itself, and no result depends on it";
    case Quirk::h23_stale_callback_flag_retained:
      return "of proposal X2, which is a policy of its own";
    case Quirk::h25_counts_idle_leaf_modules:
      return "the engine refuses a manual backward where hooks have to be counted";
    case Quirk::n6_divides_by_running_engine:
      return "the engines of a program accumulate alike";
    default:
      return "";
  }
}

// Of every row and its reference: without any quirk the engine takes an aborted backward back in a
// way that upstream does not have. H18 has no other effect in a generated case.
constexpr std::string_view kUpstreamEngine = "h18";

// A container whose outputs are ignored differs where outputs are what is divided.
std::string quirks_below(Quirk quirk) {
  std::string quirks(kUpstreamEngine);
  if (quirk == Quirk::h12_ignores_container_outputs) quirks += ",h8";
  return quirks;
}

std::vector<Fault> make_hazards() {
  static std::deque<Hazard> hazards;
  std::vector<Fault> faults;
  for (const std::string_view policy : {"deepspeed-0.18.7", "deepspeed-0.19.6"})
    for (const QuirkInfo& info : quirk_catalogue()) {
      Hazard& made = hazards.emplace_back();
      made.id = std::string(info.id) + "@" + std::string(policy);
      made.quirks_below = quirks_below(info.quirk);
      made.quirks = made.quirks_below + "," + std::string(info.id);
      made.reference = {.id = made.id, .quirks = made.quirks_below, .policy = policy};
      faults.push_back({.id = made.id,
                        .sentence = info.effect,
                        .quirks = made.quirks,
                        .policy = policy,
                        .reason = reason_of(info.quirk),
                        .reference = &made.reference});
    }
  return faults;
}

}  // namespace

const std::vector<Fault>& hazards() {
  static const std::vector<Fault> kAll = make_hazards();
  return kAll;
}

}  // namespace zeroproof::mutation
