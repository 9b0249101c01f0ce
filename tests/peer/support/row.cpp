#include "tests/peer/support/row.h"

#include <stdexcept>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof::peer {

std::string judge(RowBody body, const Twin& twin) {
  try {
    body(twin);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.empty() ? "an exception without a text" : text;
  } catch (...) {
    return "an exception that is none of std";
  }
  return {};
}

std::map<std::string, RowBody>& rows() {
  static std::map<std::string, RowBody> all;
  return all;
}

bool add_row(const std::string& name, RowBody body) {
  return rows().emplace(name, body).second;
}

Twin twin_of(const std::string& breaks_with) {
  Twin twin;
  constexpr std::string_view kFault = "fault: ";
  if (breaks_with.empty()) return twin;
  if (breaks_with == "rule: after_any_backward") {
    twin.options.fallback_rule = FallbackRule::after_any_backward;
  } else if (breaks_with == "rule: after_forward") {
    twin.options.fallback_rule = FallbackRule::after_forward;
  } else if (breaks_with.starts_with(kFault)) {
    twin.fault = breaks_with.substr(kFault.size());
  } else if (find_policy(breaks_with)) {
    twin.options.policy = breaks_with;
  } else {
    twin.options.quirks = Quirks::parse(breaks_with).value();
  }
  return twin;
}

}  // namespace zeroproof::peer
