#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// Where a property can be judged.
enum class Scope : std::uint8_t {
  trace = 1,    // over the events of a recording
  state = 2,    // over the calls of one hook-state manager
  explore = 4,  // over every legal order of a scenario
  train = 8,    // over the numbers of a training run and of its baseline: train_properties.h
  access = 16,  // over the memory accesses of streams: stream_properties.h
};

// A set of scopes.
struct Scopes {
  std::uint8_t bits = 0;
  constexpr bool has(Scope scope) const { return (bits & static_cast<std::uint8_t>(scope)) != 0; }
};

constexpr Scopes operator|(Scope a, Scope b) {
  return {static_cast<std::uint8_t>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b))};
}
constexpr Scopes only(Scope scope) {
  return {static_cast<std::uint8_t>(scope)};
}

// How an execution has to meet a property.
enum class Expectation : std::uint8_t {
  always,      // at every event
  eventually,  // by the time the thing it speaks about has ended
  sometimes,   // in at least one execution: the interesting path was reached
};

enum class Status : std::uint8_t {
  held,
  falsified,
  latent,          // the hazard is there, no value is wrong yet
  not_applicable,  // the events it speaks about did not occur
};

// "held", "falsified", "latent", "not_applicable". The view is static.
std::string_view status_name(Status status);

// One entry of the catalogue (docs/reference/trace_properties.md). The strings are static.
struct Property {
  std::string_view id;         // stable: epilogue.once_after_last_hook
  std::string_view number;     // P1 … P87, as docs/reference/trace_properties.md lists them
  std::string_view invariant;  // I1 … I14 of docs/spec/invariants.md
  std::string_view statement;  // one sentence
  std::string_view source;     // the change, report or rule that motivated it
  Expectation expectation = Expectation::always;
  Scopes scopes;
};

// One place where a property does not hold.
struct Finding {
  const Property* property = nullptr;  // static
  std::uint64_t lc = 0;                // logical clock of the event, 0 when it has none
  std::int32_t rank = 0;
  std::string event;  // the event in a few words: "engine.call grad_hook l1.weight"
  std::string text;   // one line: what is wrong, with parameter, graph task and engine
  bool is_latent = false;
  bool is_after_exception = false;  // it is about what an exception left
};

// What became of one property in one execution.
struct Verdict {
  const Property* property = nullptr;  // static
  Status status = Status::not_applicable;
  std::vector<Finding> findings;    // in order of their events; the first kFindingsMax
  std::uint64_t finding_count = 0;  // all of them
  std::string reason;               // not_applicable: why
};

// A longer list has no news for a reader and would grow with the trace.
inline constexpr std::size_t kFindingsMax = 8;

}  // namespace zeroproof
