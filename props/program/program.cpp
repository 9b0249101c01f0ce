#include "props/program/program.h"

#include <algorithm>

#include "model/check.h"
#include "props/program/config_difference.h"

namespace zeroproof::program {

const EngineSpec& Program::engine(const std::string& name) const {
  const auto found = std::ranges::find(engines, name, &EngineSpec::name);
  ZP_CHECK(found != engines.end(), "no engine '" + name + "'");
  return *found;
}

const Model& Program::model_of(const std::string& engine_name) const {
  const auto found = std::ranges::find(models, engine(engine_name).model, &Model::name);
  ZP_CHECK(found != models.end(), "engine '" + engine_name + "' has no model");
  return *found;
}

bool operator==(const Program& a, const Program& b) {
  return a.world == b.world && a.data == b.data && a.models == b.models && a.engines == b.engines &&
         a.body == b.body && config_difference(a.config) == config_difference(b.config);
}

}  // namespace zeroproof::program
