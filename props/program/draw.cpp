#include "props/program/draw.h"

#include <array>

namespace zeroproof::program {
namespace {

// What rounds is compared bit by bit.
bool is_wide(const ZeroConfig& config) {
  return config.model_dtype() == DType::float32 && !config.torch_autocast.enabled &&
         config.communication_dtype() == DType::float32;
}

void draw_data(Source& source, const Policy& policy, const ZeroConfig& config, Data& data) {
  const Source::Scope scope(source, "data");
  constexpr std::uint32_t kSeeds = 1024;
  data.seed = source.below(kSeeds);
  if (data.mode == Data::Mode::magnitude) return;
  // Exact data say which contributions are missing, the others that one is.
  constexpr std::array<std::uint32_t, 3> kEach = {2, 6, 1};
  constexpr Data::Mode kModes[] = {Data::Mode::exact, Data::Mode::identity, Data::Mode::real};
  data.mode = kModes[source.weighted(kEach)];
  if (data.mode == Data::Mode::real && !is_wide(config)) data.mode = Data::Mode::identity;
  if (!policy.can_do(data)) data.mode = Data::Mode::exact;
}

}  // namespace

DrawnProgram draw_with_productions(Source& source, const SubjectGrammar* subject) {
  return draw_with_policy(source, draw_policy(source, subject));
}

DrawnProgram draw_with_policy(Source& source, const Policy& policy) {
  DrawnProgram drawn{.program = draw_head(source, policy), .productions = {}};
  draw_data(source, policy, drawn.program.config, drawn.program.data);
  drawn.productions = draw_body(source, policy, drawn.program);
  return drawn;
}

Program draw_program(Source& source) {
  return draw_with_productions(source).program;
}

}  // namespace zeroproof::program
