#include <cstdio>

#include "engine/hooks/policies.h"

int main() {
  for (const auto& policy : zeroproof::policy_catalogue()) std::puts(policy.id.data());
  return zeroproof::find_policy("exact") && !zeroproof::find_policy("no such policy") ? 0 : 1;
}
