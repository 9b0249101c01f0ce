#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace zeroproof::zero_epilogue {

// How a rank learns that its graph task is complete; a free choice at its start.
enum class Interface : std::uint8_t { unset, counter, callback };

// Everything a rank knows. Two ranks influence each other through `launched` alone (and through
// `tags` when buckets may be launched out of order).
struct RankState {
  std::uint64_t fired = 0;     // hooks of this pass, a bit each
  std::uint64_t tags = 0;      // bucket of each collective, four bits each; M5 alone
  std::uint8_t launched = 0;   // collectives of all passes
  std::uint8_t completed = 0;  // collectives of all passes, on this rank's stream
  std::uint8_t pass = 0;       // passes returned from
  std::uint8_t epilogues = 0;  // in this pass
  std::uint8_t ready = 0;      // a bucket is to be launched now; M5: which, from 1
  std::uint8_t spine = 1;      // layers reached, HookOrder::spine
  Interface interface = Interface::unset;
  bool is_queued = false;     // a graph-task callback
  bool is_descending = true;  // the hooks fired in exactly reverse order so far; M9 alone
  friend bool operator==(const RankState&, const RankState&) = default;
};

// What a rank can do next. The declaration order is the canonical order of events.
enum class EventKind : std::uint8_t {
  choose_counter,
  choose_callback,
  hook,
  spine,
  counter,   // the epilogue, called by the fallback counter
  callback,  // the epilogue, called by the graph task
  launch,
  finish,  // the epilogue returns
  complete,
};
constexpr std::size_t kEventKinds = 9;

struct RankEvent {
  EventKind kind = EventKind::hook;
  std::uint8_t hook = 0;  // which, EventKind::hook
  friend auto operator<=>(const RankEvent&, const RankEvent&) = default;
};

// An event of the whole model.
struct Event {
  std::uint8_t rank = 0;
  RankEvent what;
  friend auto operator<=>(const Event&, const Event&) = default;
};

// A1 to A5 of docs/spec/explorer.md 1.1.
enum class Property : std::uint8_t { none, a1, a2, a3, a4, a5 };
constexpr std::size_t kProperties = 6;  // with none

std::string_view property_name(Property property);       // "A1"
std::string_view property_statement(Property property);  // one sentence

// "hook 3 on rank 1"; `before` is the rank's state when it happens.
std::string event_text(const Event& event, const RankState& before);

}  // namespace zeroproof::zero_epilogue
