#include "props/train/config_use.h"

#include <string>

#include "props/train/config_document.h"
#include "props/train/engine_target.h"
#include "props/train/window_records.h"

namespace zeroproof::train {
namespace {

bool comes_back(const ZeroConfig& config) {
  const std::string document = config_document(config);
  const auto parsed = parse_ds_config(document, "generated");
  return parsed && config_document(parsed->config) == document;
}

// Also where a loss scale comes with it, which is all right.
bool is_refused(EngineTarget& engines, int number) {
  const RefusedConfig refused = refused_config(engines.engine(0).config(), number);
  const std::string alone = engines.refusal_of_another(refused.config, std::nullopt);
  return !alone.empty() && alone.starts_with(refused.begins) &&
         engines.refusal_of_another(refused.config, CaseSpec::kCustomLossScale) == alone;
}

}  // namespace

void read_configuration(const CaseSpec& spec, Pass& pass) {
  auto* const engines = dynamic_cast<EngineTarget*>(&pass.target());
  if (spec.is_read != 0)
    record_refusal(pass, "nothing of a configuration",
                   !engines || comes_back(engines->engine(0).config()));
  if (spec.refuses != 0)
    record_refusal(pass, "a configuration", !engines || is_refused(*engines, spec.refuses));
}

}  // namespace zeroproof::train
