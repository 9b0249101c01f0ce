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

// The scene where the program begins.
Scene first_scene(Source& source, const Policy& policy, Program& program) {
  auto start = Typestate::of(program);
  ZP_CHECK(start, "the head of a drawn program makes sense");
  return Scene(program, source, policy, std::move(*start));
}

bool has_place(Scene& scene, const Production& production) {
  const auto names = scene.engines();
  return std::ranges::any_of(names, [&](const std::string& engine) {
    scene.choose_engine(engine);
    return production.enabled(scene);
  });
}

// A production that few jobs have a place for is as frequent as others, since some jobs are drawn
// until one has. Those that need more than a beginning get the last of them.
Program draw_fitting_job(Source& source, const Policy& policy) {
  constexpr int kTries = 32;
  const Production& first = grammar()[policy.rows.front()];
  Program program = draw_job(source, policy);
  for (int i = 1; i < kTries; ++i) {
    Scene scene = first_scene(source, policy, program);
    if (has_place(scene, first)) break;
    program = draw_job(source, policy);
  }
  return program;
}

// Others, of those that the job has a place for.
void draw_more_rows(Source& source, Program& program, Policy& policy) {
  const Source::Scope scope(source, "rows");
  const int count = source.between(0, policy.is_plain ? 4 : 2);
  if (count == 0) return;
  Scene scene = first_scene(source, policy, program);
  std::vector<std::uint32_t> weights = {1};
  for (std::size_t row = 1; row < grammar().size(); ++row)
    weights.push_back(policy.can_draw(row) && has_place(scene, grammar()[row]) ? 1 : 0);
  for (int i = 0; i < count; ++i) policy.rows.push_back(source.weighted(weights));
}

}  // namespace

DrawnProgram draw_with_productions(Source& source, const SubjectGrammar* subject) {
  Policy policy = draw_policy(source, subject);
  DrawnProgram drawn{.program = draw_fitting_job(source, policy), .productions = {}};
  draw_more_rows(source, drawn.program, policy);
  drawn.productions = draw_body(source, policy, drawn.program);
  return drawn;
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
