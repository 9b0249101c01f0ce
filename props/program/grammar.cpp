#include "props/program/grammar.h"

#include <vector>

namespace zeroproof::program {
namespace {

std::vector<Production> all_productions() {
  std::vector<Production> all;
  for (const auto& subject :
       {accumulation_productions(), loss_scaling_productions(), checkpoint_productions(),
        nesting_productions(), exception_productions(), graph_productions(), external_productions(),
        inspection_productions(), configuration_productions(), misuse_productions()})
    all.insert(all.end(), subject.begin(), subject.end());
  return all;
}

}  // namespace

std::span<const Production> grammar() {
  static const std::vector<Production> kAll = all_productions();
  return kAll;
}

}  // namespace zeroproof::program
