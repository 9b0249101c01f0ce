#include "props/mutation/decorators.h"

#include <algorithm>
#include <array>

#include "props/mutation/policy_decorators.h"
#include "props/mutation/recompute.h"
#include "props/mutation/runtime_decorators.h"

namespace zeroproof::mutation {
namespace {

struct Decorator {
  std::string_view name;
  void (*add)(train::Subject& subject);
};

constexpr auto kDecorators = std::to_array<Decorator>({
    {"queue_callback_at_first_hook",
     [](train::Subject& subject) { subject.decorate_policy = queue_callback_at_first_hook; }},
    {"lock_backwards", [](train::Subject& subject) { subject.decorate_policy = lock_backwards; }},
    {"share_callbacks", [](train::Subject& subject) { subject.decorate_policy = share_callbacks; }},
    {"reduce_over_one_rank",
     [](train::Subject& subject) { subject.decorate_runtime = reduce_over_one_rank; }},
    {"cross_groups", [](train::Subject& subject) { subject.decorate_runtime = cross_groups; }},
    {"recompute_without_context",
     [](train::Subject& subject) { subject.recompute = recompute_without_context; }},
    {"double_tile_weight", [](train::Subject& subject) { subject.tile_weight = 2.0; }},
});

}  // namespace

bool add_decorator(std::string_view name, train::Subject& subject) {
  const auto at = std::ranges::find(kDecorators, name, &Decorator::name);
  if (at == kDecorators.end()) return false;
  at->add(subject);
  return true;
}

}  // namespace zeroproof::mutation
