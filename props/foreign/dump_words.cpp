#include "props/foreign/dump_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "props/replay/rank_set.h"

namespace zeroproof {
namespace {

std::string end_words(std::int32_t rank) {
  return rank < 0 ? std::string("?") : fmt::format("{}", rank);
}

}  // namespace

std::string group_words(std::string_view name, std::string_view desc) {
  if (name.empty()) return "a group that the trace does not name";
  const bool is_told = !desc.empty() && desc != "undefined" && desc != "default_pg" && desc != name;
  return is_told ? fmt::format("group {} ({})", name, desc) : fmt::format("group {}", name);
}

std::string operation_words(const DumpedCollective& one) {
  std::string text = one.shape->op;
  if (one.is_point_to_point)
    text += fmt::format(" {}->{}", end_words(one.from_rank), end_words(one.to_rank));
  const TensorSizes& sizes =
      one.shape->input_sizes.empty() ? one.shape->output_sizes : one.shape->input_sizes;
  if (!sizes.empty()) text += fmt::format(" of sizes {}", sizes);
  return text;
}

std::string place_words(const DumpedCollective& one) {
  return fmt::format("{} number {} of {}", one.shape->op, one.number,
                     group_words(one.shape->group, one.shape->group_desc));
}

DiagnosisMoment dump_moment(const RankDump& dump, const DumpedCollective& one, bool is_bad) {
  std::string text = fmt::format("{}: {}", place_words(one), operation_words(one));
  if (one.state != OpState::unknown) text += fmt::format(", {}", op_state_name(one.state));
  if (!one.shape->frame.empty()) text += ", from " + one.shape->frame;
  return {dump.rank, 0, std::move(text), is_bad};
}

std::string ranks_with_verb(const std::vector<std::int32_t>& ranks, std::string_view one,
                            std::string_view many) {
  return fmt::format("{} {}", rank_words(ranks), ranks.size() == 1 ? one : many);
}

}  // namespace zeroproof
