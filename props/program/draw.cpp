#include "props/program/draw.h"

#include <array>

namespace zeroproof::program {
namespace {

void draw_data(Source& source, Data& data) {
  const Source::Scope scope(source, "data");
  constexpr std::uint32_t kSeeds = 1024;
  data.seed = source.below(kSeeds);
  if (source.one_in(8)) data.mode = Data::Mode::real;
}

}  // namespace

DrawnProgram draw_with_productions(Source& source) {
  const Policy policy = draw_policy(source);
  DrawnProgram drawn{.program = draw_head(source, policy), .productions = {}};
  draw_data(source, drawn.program.data);
  drawn.productions = draw_body(source, policy, drawn.program);
  return drawn;
}

Program draw_program(Source& source) {
  return draw_with_productions(source).program;
}

}  // namespace zeroproof::program
