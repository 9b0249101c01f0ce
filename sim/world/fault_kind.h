#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::sim {

enum class FaultKind : std::uint8_t {
  exception,     // the operation of an event throws on all ranks: a node, a hook, a callback
  abort,         // the rank's program ends at an event
  timeout,       // a collective fails, and its group with it
  allocation,    // there is no memory, on one rank or on all
  overflow,      // a gradient is not finite on one rank
  skipped_step,  // no rank calls step() where its program does
  hook_removal,  // the user's own hooks are taken away at an event, on all ranks
  destroy,       // all ranks give up their engines between two calls, or in a backward by hand
};
inline constexpr std::size_t kFaultKinds = 8;

std::string_view fault_name(FaultKind kind);  // "exception"; static
std::optional<FaultKind> fault_kind_of(std::string_view name);
// "exception,abort", in the order of the enumeration; "all" is every kind. Empty: unknown word.
std::optional<std::vector<FaultKind>> parse_fault_kinds(std::string_view text);
std::string fault_kinds_text(std::span<const FaultKind> kinds);

// Whether the program of a rank ends by it, so that a fresh world has to take over.
bool ends_program(FaultKind kind, int rank);

// A place where a rank can fail, and how. Places are counted from one collective to the next, so
// that ranks with more or fewer events of their own agree on what they have done together.
struct Fault {
  FaultKind kind = FaultKind::exception;
  int rank = 0;              // -1: all, each at the same place
  std::uint64_t window = 0;  // of the program
  std::uint64_t after = 0;   // so many collectives of the rank in it
  std::uint64_t at = 0;      // of the places since then, from 0
  friend bool operator==(const Fault&, const Fault&) = default;
};

std::string describe(const Fault& fault);  // "allocation.r1.w0.17+2"

}  // namespace zeroproof::sim
