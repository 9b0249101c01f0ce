#include "props/foreign/flight_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

namespace zeroproof {
namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), op) != words.end();
}

// Of the first tensor; a wild size cannot overflow it.
double elements(const std::vector<std::vector<std::int64_t>>& sizes) {
  double product = 1;
  if (!sizes.empty())
    for (const std::int64_t size : sizes.front()) product *= static_cast<double>(size);
  return product;
}

FlightMatch differs(FlightVerdict verdict, std::string difference) {
  return {verdict, std::move(difference)};
}

FlightMatch match_messages(const DumpedCollective& one, const DumpedCollective& other) {
  const bool is_send = one.op == "send";
  const bool has_ends = other.op == (is_send ? "recv" : "send") &&
                        one.peer_from == other.peer_from && one.peer_to == other.peer_to;
  if (!has_ends)
    return differs(FlightVerdict::size_or_syntax_mismatch,
                   fmt::format("{} {}->{} against {} {}->{}", one.op, one.peer_from, one.peer_to,
                               other.op, other.peer_from, other.peer_to));
  const auto& sent = is_send ? one.input_sizes : one.output_sizes;
  const auto& received = is_send ? other.output_sizes : other.input_sizes;
  if (sent == received) return {};
  return differs(FlightVerdict::size_or_syntax_mismatch,
                 fmt::format("sizes {} and {}", sent, received));
}

// The sizes that two ranks must have in common, and those that follow from the group.
FlightMatch match_sizes(const DumpedCollective& one, const DumpedCollective& other,
                        std::size_t group_size) {
  const auto mismatch = [](std::string_view what, const auto& mine, const auto& theirs) {
    return differs(FlightVerdict::size_or_syntax_mismatch,
                   fmt::format("{} sizes {} and {}", what, mine, theirs));
  };
  if (!is_one_of(one.op, {"all_to_all", "scatter"}) && one.input_sizes != other.input_sizes)
    return mismatch("input", one.input_sizes, other.input_sizes);
  if (!is_one_of(one.op, {"all_to_all", "gather"}) && one.output_sizes != other.output_sizes)
    return mismatch("output", one.output_sizes, other.output_sizes);
  const bool has_both = !one.input_sizes.empty() && !one.output_sizes.empty();
  const auto ranks = static_cast<double>(group_size);
  if (!has_both || group_size == 0) return {};
  if (is_one_of(one.op, {"all_reduce", "allreduce_coalesced"}) &&
      one.input_sizes != one.output_sizes)
    return mismatch("input and output", one.input_sizes, one.output_sizes);
  const bool is_gather = is_one_of(one.op, {"all_gather", "_all_gather_base", "all_gather_base",
                                            "all_gather_into_tensor_coalesced"});
  if (is_gather && elements(one.output_sizes) != elements(one.input_sizes) * ranks &&
      one.output_sizes.size() == 1)
    return mismatch(fmt::format("input and output over {} ranks", group_size), one.input_sizes,
                    one.output_sizes);
  const bool is_scatter = is_one_of(
      one.op, {"reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced"});
  if (is_scatter && elements(one.input_sizes) != elements(one.output_sizes) * ranks &&
      one.input_sizes.size() == 1)
    return mismatch(fmt::format("input and output over {} ranks", group_size), one.input_sizes,
                    one.output_sizes);
  return {};
}

std::set<std::string> as_set(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

bool differ(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return !one.empty() && !other.empty() && as_set(one) != as_set(other);
}

FlightMatch match_dtypes(const DumpedCollective& one, const DumpedCollective& other) {
  const bool is_wrong = (!is_one_of(one.op, {"scatter", "gather", "broadcast"}) &&
                         differ(one.input_dtypes, one.output_dtypes)) ||
                        (!is_one_of(one.op, {"scatter", "broadcast"}) &&
                         differ(one.input_dtypes, other.input_dtypes)) ||
                        (one.op != "gather" && differ(one.output_dtypes, other.output_dtypes));
  if (!is_wrong) return {};
  return differs(FlightVerdict::collective_dtype_mismatch,
                 fmt::format("dtypes {} -> {} and {} -> {}", one.input_dtypes, one.output_dtypes,
                             other.input_dtypes, other.output_dtypes));
}

}  // namespace

std::string_view flight_verdict_name(FlightVerdict verdict) {
  constexpr std::array<std::string_view, 6> kNames = {"FULLY_MATCHED",
                                                      "COLLECTIVE_TYPE_MISMATCH",
                                                      "SIZE_OR_SYNTAX_MISMATCH",
                                                      "COLLECTIVE_STATE_MISMATCH",
                                                      "COLLECTIVE_DTYPE_MISMATCH",
                                                      "UNDECIDED"};
  return kNames[static_cast<std::size_t>(verdict)];
}

FlightMatch match_collectives(const DumpedCollective& one, const DumpedCollective& other,
                              std::size_t group_size) {
  if (one.is_point_to_point()) return match_messages(one, other);
  if (one.op != other.op)
    return differs(FlightVerdict::collective_type_mismatch,
                   fmt::format("{} against {}", one.op, other.op));
  if (auto sizes = match_sizes(one, other, group_size);
      sizes.verdict != FlightVerdict::fully_matched)
    return sizes;
  if (auto dtypes = match_dtypes(one, other); dtypes.verdict != FlightVerdict::fully_matched)
    return dtypes;
  if (one.state != other.state)
    return differs(FlightVerdict::collective_state_mismatch,
                   fmt::format("{} and {}", one.state, other.state));
  if (one.op == "all_to_all")
    return differs(FlightVerdict::undecided, "sizes may differ by design");
  return {};
}

}  // namespace zeroproof
