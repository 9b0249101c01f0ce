#include "props/train/config_use.h"

#include <string>

#include "props/train/config_document.h"
#include "props/train/engine_target.h"

namespace zeroproof::train {
namespace {

bool comes_back(const ZeroConfig& config) {
  const std::string document = config_document(config);
  const auto parsed = parse_ds_config(document, "generated");
  return parsed && config_document(parsed->config) == document;
}

bool is_refused(Engine& engine, int number) {
  const RefusedConfig refused = refused_config(engine.config(), number);
  const auto made = Engine::initialize(engine.autograd(), engine.module(), refused.config,
                                       engine.runtime(), {.id = EngineId{9}});
  return !made && made.error().text.starts_with(refused.begins);
}

void record(Pass& pass, const std::string& name, bool is_right) {
  pass.target().record(name, Tensor::of({is_right ? 1.0 : 0.0}, {1}));
}

}  // namespace

void read_configuration(const CaseSpec& spec, Pass& pass) {
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  if (spec.is_read != 0)
    record(pass, "refused/nothing of a configuration",
           !engines || comes_back(engines->engine(0).config()));
  if (spec.refuses != 0)
    record(pass, "refused/a configuration",
           !engines || is_refused(engines->engine(0), spec.refuses));
}

}  // namespace zeroproof::train
