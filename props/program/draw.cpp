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

Program draw_program(Source& source) {
  const Policy policy = draw_policy(source);
  Program program = draw_head(source, policy);
  draw_data(source, program.data);
  draw_body(source, policy, program);
  return program;
}

}  // namespace zeroproof::program
