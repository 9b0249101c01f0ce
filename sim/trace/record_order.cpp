#include "sim/trace/record_order.h"

#include <fmt/format.h>

#include <variant>

namespace zeroproof {
namespace {

tl::unexpected<std::string> problem(std::string text) {
  return tl::unexpected(std::move(text));
}

}  // namespace

ParseResult RecordOrder::admit(const Record& record) {
  const bool is_header = std::holds_alternative<HeaderRecord>(record.body);
  if (!has_header_ && !is_header)
    return problem("not a hooktrace file: its first record is not a header");
  if (has_header_ && is_header)
    return problem("second header; split concatenated traces into files");
  if (has_end_) return problem("record after the end record; split concatenated traces into files");
  has_header_ = true;
  if (const HookEvent* event = record.event()) return admit_event(*event);
  has_end_ = std::holds_alternative<EndRecord>(record.body);
  return {};
}

ParseResult RecordOrder::admit_event(const HookEvent& event) {
  constexpr std::int32_t kMaxRanks = 1 << 20;
  if (event.rank >= kMaxRanks)
    return problem(
        fmt::format("rank {} is above {}; correct the producer", event.rank, kMaxRanks - 1));
  const auto rank = static_cast<std::size_t>(event.rank);
  if (rank >= last_lc_.size()) last_lc_.resize(rank + 1);
  if (event.lc <= last_lc_[rank])
    return problem(
        fmt::format("lc {} after lc {} of rank {}; the logical clock must increase, restore the "
                    "order of the lines",
                    event.lc, last_lc_[rank], rank));
  last_lc_[rank] = event.lc;
  return {};
}

std::string truncation_text(std::string_view place, std::string_view what) {
  return fmt::format("{}: truncated: {}; what stands before it was read", place, what);
}

}  // namespace zeroproof
