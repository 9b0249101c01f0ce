#include "props/replay/collective_rules.h"

#include <algorithm>
#include <array>

namespace zeroproof {
namespace {

// The recorded size is that of the largest tensor argument. It is the same on every rank where
// each rank passes the whole input or the whole output. The root of a scatter or gather passes a
// list that no other rank has; the splits of an all_to_all may depend on the data.
constexpr std::array<CollectiveRule, 20> kRules = {{
    {"all_reduce", true, false, true},
    {"all_reduce_coalesced", true, false, true},
    {"all_gather", true, false, true},
    {"all_gather_into_tensor", true, false, true},
    {"all_gather_single", true, false, true},
    {"all_gather_coalesced", true, false, true},
    {"all_gather_into_tensor_coalesced", true, false, true},
    {"reduce_scatter", true, false, true},
    {"reduce_scatter_tensor", true, false, true},
    {"reduce_scatter_single", true, false, true},
    {"reduce_scatter_tensor_coalesced", true, false, true},
    {"broadcast", true, true, false},
    {"reduce", true, true, false},
    {"gather", false, true, false},
    {"gather_single", false, true, false},
    {"scatter", false, true, false},
    {"all_to_all", false, false, true},
    {"all_to_all_single", false, false, true},
    {"barrier", false, false, true},
    {"monitored_barrier", false, false, true},
}};

constexpr CollectiveRule kUnknown = {};

}  // namespace

const CollectiveRule& collective_rule(std::string_view op) {
  const auto at = std::find_if(kRules.begin(), kRules.end(),
                               [&](const CollectiveRule& rule) { return rule.op == op; });
  return at == kRules.end() ? kUnknown : *at;
}

}  // namespace zeroproof
