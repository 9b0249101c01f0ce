#include "props/train/window_context.h"

#include "model/check.h"

namespace zeroproof::train {

WindowContext context_of(const CaseSpec& spec, Pass& pass, bool is_lost) {
  return {.spec = spec,
          .pass = pass,
          .engines = dynamic_cast<EngineTarget*>(&pass.target()),
          .is_lost = is_lost};
}

GeneratedModel& model_of(Pass& pass, std::size_t engine) {
  auto* const model = dynamic_cast<GeneratedModel*>(&pass.target().module(engine));
  ZP_CHECK(model, "a generated program runs on generated models");
  return *model;
}

}  // namespace zeroproof::train
