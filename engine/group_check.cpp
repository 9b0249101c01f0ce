#include "engine/group_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace zeroproof {
namespace {

// A parameter of the module, and the group that it was found in so far.
struct Known {
  nn::NamedParameter parameter;
  std::optional<std::size_t> group;
};

}  // namespace

Result<void> check_groups(const nn::Module& module, const std::vector<TensorList>& groups) {
  std::vector<Known> all;
  for (const nn::NamedParameter& parameter : module.named_parameters())
    all.push_back({parameter, std::nullopt});
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (std::size_t i = 0; i < groups[group].size(); ++i) {
      const auto at = std::ranges::find_if(
          all, [&](const Known& it) { return it.parameter.tensor.is_same(groups[group][i]); });
      if (at == all.end())
        return fail(ErrorCode::usage,
                    fmt::format("parameter_groups[{}][{}] is no parameter of the module; give "
                                "tensors of named_parameters()",
                                group, i));
      if (at->group)
        return fail(ErrorCode::usage,
                    fmt::format("parameter '{}' is in parameter_groups {} and {}; put it into one",
                                at->parameter.name, *at->group, group));
      at->group = group;
    }
  }
  return {};
}

}  // namespace zeroproof
