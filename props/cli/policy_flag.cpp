#include "props/cli/policy_flag.h"

#include <vector>

#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof {

void add_policy_flag(Flags& flags, std::string& policy, std::string_view text, bool takes_all) {
  std::vector<std::string_view> ids;
  for (const PolicyInfo& info : policy_catalogue()) ids.push_back(info.id);
  if (takes_all) ids.emplace_back("all");
  const auto id_of = [](const std::string& name) -> Result<std::string> {
    const auto info = find_policy(name);
    if (!info) return tl::unexpected(info.error());
    return std::string((*info)->id);
  };
  flags.add_value("policy", policy, {"NAME", text, ids, id_of});
}

}  // namespace zeroproof
