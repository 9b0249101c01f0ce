#include "props/foreign/flight_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace zeroproof {
namespace {

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// One spelling for the operations of c10d, its backends and Kineto: "_all_gather_base",
// "allgather", "all_gather_into_tensor" are all gathers.
bool is_reduce_scatter(std::string_view op) {
  return contains(op, "reduce_scatter") || contains(op, "REDUCE_SCATTER");
}
bool is_all_gather(std::string_view op) {
  return contains(op, "all_gather") || contains(op, "allgather") || contains(op, "ALLGATHER");
}
bool is_all_reduce(std::string_view op) {
  return contains(op, "all_reduce") || contains(op, "allreduce");
}
bool is_scatter(std::string_view op) {
  return contains(op, "scatter") && !is_reduce_scatter(op);
}
bool is_gather(std::string_view op) {
  return contains(op, "gather") && !is_all_gather(op);
}

double elements_of_first(const TensorSizes& sizes) {
  double product = 1;
  if (!sizes.empty())
    for (const std::int64_t size : sizes.front()) product *= static_cast<double>(size);
  return product;
}

FlightMatch differs(FlightVerdict verdict, std::string difference) {
  return {verdict, std::move(difference)};
}

FlightMatch size_mismatch(std::string_view what, const TensorSizes& mine,
                          const TensorSizes& theirs) {
  return differs(FlightVerdict::size_or_syntax_mismatch,
                 fmt::format("{} sizes {} and {}", what, mine, theirs));
}

FlightMatch match_messages(const DumpedCollective& one, const DumpedCollective& other) {
  const bool is_send = one.shape->op == "send";
  const auto same = [](std::int32_t a, std::int32_t b) { return a < 0 || b < 0 || a == b; };
  const bool has_ends = other.shape->op == (is_send ? "recv" : "send") &&
                        same(one.from_rank, other.from_rank) && same(one.to_rank, other.to_rank);
  if (!has_ends)
    return differs(FlightVerdict::size_or_syntax_mismatch,
                   fmt::format("{} {}->{} against {} {}->{}", one.shape->op, one.from_rank,
                               one.to_rank, other.shape->op, other.from_rank, other.to_rank));
  const CollectiveShape& sender = is_send ? *one.shape : *other.shape;
  const CollectiveShape& receiver = is_send ? *other.shape : *one.shape;
  const TensorSizes& received =
      receiver.output_sizes.empty() ? receiver.input_sizes : receiver.output_sizes;
  const bool is_unknown = sender.input_sizes.empty() || received.empty();
  if (is_unknown || sender.input_sizes == received) return {};
  return differs(FlightVerdict::size_or_syntax_mismatch,
                 fmt::format("sizes {} and {}", sender.input_sizes, received));
}

// Whether a whole buffer holds the share of each rank: as one tensor a share, or as a list with a
// tensor a rank.
bool holds_shares(const TensorSizes& whole, const TensorSizes& share, std::size_t group_size) {
  const auto ranks = static_cast<double>(group_size);
  return whole.empty() || share.empty() || group_size == 0 ||
         elements_of_first(whole) == elements_of_first(share) * ranks ||
         elements_of(whole) == elements_of(share) * ranks;
}

// A list with a tensor a rank whose tensors differ: every rank's share has another size.
bool is_uneven_list(const TensorSizes& whole, std::size_t group_size) {
  return whole.size() > 1 && whole.size() == group_size &&
         std::any_of(whole.begin(), whole.end(),
                     [&](const auto& sizes) { return sizes != whole.front(); });
}

// The sizes that two ranks must have in common, and those that follow from the group. `is_fixed`:
// which of them the operation wants equal on all ranks.
struct FixedSizes {
  bool input = true;
  bool output = true;
};

FixedSizes fixed_sizes(const CollectiveShape& one, std::size_t group_size) {
  if (is_uneven(one.op)) return {false, false};
  if (is_scatter(one.op)) return {false, true};
  if (is_gather(one.op)) return {true, false};
  if (is_all_gather(one.op) && is_uneven_list(one.output_sizes, group_size)) return {false, true};
  if (is_reduce_scatter(one.op) && is_uneven_list(one.input_sizes, group_size))
    return {true, false};
  return {};
}

FlightMatch match_sizes(const CollectiveShape& one, const CollectiveShape& other,
                        std::size_t group_size) {
  const FixedSizes fixed = fixed_sizes(one, group_size);
  const auto differ = [](const TensorSizes& a, const TensorSizes& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  if (fixed.input && differ(one.input_sizes, other.input_sizes))
    return size_mismatch("input", one.input_sizes, other.input_sizes);
  if (fixed.output && differ(one.output_sizes, other.output_sizes))
    return size_mismatch("output", one.output_sizes, other.output_sizes);
  if (!fixed.input || !fixed.output) return {};
  if (is_all_reduce(one.op) && differ(one.input_sizes, one.output_sizes))
    return size_mismatch("input and output", one.input_sizes, one.output_sizes);
  const bool is_wrong =
      (is_all_gather(one.op) && !holds_shares(one.output_sizes, one.input_sizes, group_size)) ||
      (is_reduce_scatter(one.op) && !holds_shares(one.input_sizes, one.output_sizes, group_size));
  if (!is_wrong) return {};
  return size_mismatch(fmt::format("input and output over {} ranks", group_size), one.input_sizes,
                       one.output_sizes);
}

std::set<std::string> as_set(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

bool differ(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  return !one.empty() && !other.empty() && as_set(one) != as_set(other);
}

FlightMatch match_dtypes(const CollectiveShape& one, const CollectiveShape& other) {
  const bool has_root_input = is_scatter(one.op) || one.op == "broadcast";
  const bool has_root_output = is_gather(one.op);
  const bool is_wrong =
      (!has_root_input && !has_root_output && differ(one.input_dtypes, one.output_dtypes)) ||
      (!has_root_input && differ(one.input_dtypes, other.input_dtypes)) ||
      (!has_root_output && differ(one.output_dtypes, other.output_dtypes));
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

FlightMatch match_shapes(const CollectiveShape& one, const CollectiveShape& other,
                         std::size_t group_size) {
  if (one.op != other.op)
    return differs(FlightVerdict::collective_type_mismatch,
                   fmt::format("{} against {}", one.op, other.op));
  if (auto sizes = match_sizes(one, other, group_size); !sizes.is_fine()) return sizes;
  return match_dtypes(one, other);
}

FlightMatch match_collectives(const DumpedCollective& one, const DumpedCollective& other,
                              std::size_t group_size) {
  if (one.is_point_to_point) return match_messages(one, other);
  if (auto shapes = match_shapes(*one.shape, *other.shape, group_size); !shapes.is_fine())
    return shapes;
  if (one.state != other.state)
    return differs(FlightVerdict::collective_state_mismatch,
                   fmt::format("{} and {}", op_state_name(one.state), op_state_name(other.state)));
  if (is_uneven(one.shape->op))
    return differs(FlightVerdict::undecided, "sizes may differ by design");
  return {};
}

bool is_uneven(std::string_view op) {
  return contains(op, "all_to_all") || contains(op, "alltoall") || op.ends_with("_v");
}

bool needs_all_ranks(std::string_view op) {
  return is_all_reduce(op) || is_all_gather(op) || is_reduce_scatter(op) || is_uneven(op) ||
         contains(op, "barrier");
}

double elements_of(const TensorSizes& sizes) {
  double sum = 0;
  for (const auto& tensor : sizes) {
    double product = 1;
    for (const std::int64_t size : tensor) product *= static_cast<double>(size);
    sum += product;
  }
  return sum;
}

}  // namespace zeroproof
