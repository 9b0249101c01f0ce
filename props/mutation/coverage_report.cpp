#include "props/mutation/coverage_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace zeroproof::mutation {
namespace {

using OrderedJson = nlohmann::ordered_json;
using reference::Share;

double percent(std::int64_t part, const Share& share) {
  return share.units == 0 ? 0.0
                          : 100.0 * static_cast<double>(part) / static_cast<double>(share.units);
}

template <class See>
void for_each_freedom(const Share& share, See see) {
  for (std::size_t i = 0; i < reference::kFreedoms; ++i)
    if (share.unspecified[i] != 0)
      see(reference::freedom_name(static_cast<reference::Freedom>(i)), share.unspecified[i]);
}

std::string share_text(std::string_view what, const Share& share) {
  std::string text =
      fmt::format("unspecified {}: {:.2f} % of {}", what, share.percent_unspecified(), share.units);
  for_each_freedom(share, [&](std::string_view freedom, std::int64_t units) {
    text += fmt::format("; {} {:.2f}", freedom, percent(units, share));
  });
  return text + "\n";
}

OrderedJson share_json(const Share& share) {
  OrderedJson freedoms = OrderedJson::object();
  for_each_freedom(share, [&](std::string_view freedom, std::int64_t units) {
    freedoms[std::string(freedom)] = units;
  });
  return {{"units", share.units},
          {"percent_unspecified", share.percent_unspecified()},
          {"unspecified", freedoms}};
}

}  // namespace

std::string coverage_text(const reference::Coverage& coverage) {
  std::string text = share_text("parameter-time of stage 3", coverage.parameter_time) +
                     share_text("collectives", coverage.collectives) + "rules applied:";
  for (const reference::RuleInfo& rule : reference::rules())
    text += fmt::format(" {} {}", rule.id, coverage.applied[static_cast<std::size_t>(rule.rule)]);
  return text + "\n";
}

nlohmann::ordered_json coverage_json(const reference::Coverage& coverage) {
  OrderedJson applied = OrderedJson::object();
  for (const reference::RuleInfo& rule : reference::rules())
    applied[std::string(rule.id)] = coverage.applied[static_cast<std::size_t>(rule.rule)];
  return {{"parameter_time", share_json(coverage.parameter_time)},
          {"collectives", share_json(coverage.collectives)},
          {"applied", applied}};
}

}  // namespace zeroproof::mutation
