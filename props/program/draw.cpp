#include "props/program/draw.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/check.h"
#include "props/program/scene.h"

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

Program draw_job(Source& source, const Policy& policy) {
  const Source::Scope scope(source, "job");
  Program program = draw_head(source, policy);
  draw_data(source, policy, program.config, program.data);
  return program;
}

// Whether the first of the case's productions may stand where the program begins.
bool has_place(Source& source, const Policy& policy, Program& program) {
  auto start = Typestate::of(program);
  ZP_CHECK(start, "the head of a drawn program makes sense");
  Scene scene(program, source, policy, std::move(*start));
  const auto names = scene.engines();
  return std::ranges::any_of(names, [&](const std::string& engine) {
    scene.choose_engine(engine);
    return grammar()[policy.rows.front()].enabled(scene);
  });
}

// A production that few jobs have a place for is as frequent as others, since some jobs are drawn
// until one has. Those that need more than a beginning get the last of them.
Program draw_fitting_job(Source& source, const Policy& policy) {
  constexpr int kTries = 8;
  Program program = draw_job(source, policy);
  for (int i = 1; i < kTries && !has_place(source, policy, program); ++i)
    program = draw_job(source, policy);
  return program;
}

}  // namespace

DrawnProgram draw_with_productions(Source& source, const SubjectGrammar* subject) {
  return draw_with_policy(source, draw_policy(source, subject));
}

DrawnProgram draw_with_policy(Source& source, const Policy& policy) {
  DrawnProgram drawn{.program = draw_fitting_job(source, policy), .productions = {}};
  drawn.productions = draw_body(source, policy, drawn.program);
  return drawn;
}

Program draw_program(Source& source) {
  return draw_with_productions(source).program;
}

}  // namespace zeroproof::program
