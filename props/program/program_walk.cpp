#include "props/program/program_walk.h"

#include <algorithm>
#include <variant>

namespace zeroproof::program {

bool reads_alone(const Body& body) {
  return std::ranges::all_of(body, [](const Statement& statement) {
    return std::holds_alternative<Inspect>(statement.kind);
  });
}

bool raises_alone(const Body& body) {
  return body.empty() || (body.size() == 1 && std::holds_alternative<Raise>(body.front().kind));
}

}  // namespace zeroproof::program
