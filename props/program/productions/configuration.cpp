// Engines that are asked for with another configuration, or made for a while.
#include "props/program/config_domains.h"
#include "props/program/productions/conditions.h"

namespace zeroproof::program {
namespace {

// Made, and gone again; or refused, as validate() says.
bool try_one(Scene& scene) {
  const auto domains = config_domains();
  const ConfigDomain& domain =
      domains[scene.source().below(static_cast<std::uint32_t>(domains.size()))];
  const auto tried = static_cast<std::uint32_t>(domain.tried.size());
  const TryConfig config{.engine = scene.engine(),
                         .key = domain.key,
                         .value = domain.tried[scene.source().below(tried)]};
  return scene.add({config}) || scene.add_refused({config});
}

bool try_configurations(Scene& scene) {
  const int count = scene.source().between(2, 10);
  for (int i = 0; i < count; ++i)
    if (!try_one(scene)) return false;
  return true;
}

bool temporary_engine(Scene& scene) {
  return scene.add({TemporaryEngine{.engine = scene.engine()}});
}

bool foreign_backward(Scene& scene) {
  return scene.add({ForeignBackward{.throws = scene.source().one_in(3)}});
}

}  // namespace

std::span<const Production> configuration_productions() {
  constexpr std::uint32_t kConfiguration = tags(Tag::configuration);
  static constexpr Production kRows[] = {
      {"try_configurations", 5, kConfiguration, Position::aside, always, try_configurations},
      {"temporary_engine", 3, kConfiguration | tags(Tag::engines), Position::aside, always,
       temporary_engine},
      {"foreign_backward", 2, tags(Tag::nesting), Position::aside, always, foreign_backward}};
  return kRows;
}

}  // namespace zeroproof::program
