#include "props/mutation/mutants.h"

namespace zeroproof::mutation {
namespace {

program::EngineVariant variant_of(const Fault* fault) {
  train::TrainCell cell;
  mutate(fault, cell);
  program::EngineVariant variant{.policy = cell.policy,
                                 .quirks = cell.quirks,
                                 .subject = cell.subject,
                                 .fallback_rule = cell.fallback_rule};
  if (cell.api == train::AutogradApi::none) variant.autograd = program::World::Autograd::no_counts;
  if (cell.api == train::AutogradApi::no_callback)
    variant.autograd = program::World::Autograd::no_callback;
  return variant;
}

}  // namespace

hunt::Mutant mutant_of(const Fault& fault) {
  return {.id = std::string(fault.id),
          .sentence = std::string(fault.sentence),
          .properties = std::string(fault.properties),
          .variant = variant_of(&fault),
          .reference = variant_of(fault.reference)};
}

std::vector<hunt::Mutant> mutants_of(const std::vector<const Fault*>& faults) {
  std::vector<hunt::Mutant> mutants;
  for (const Fault* fault : faults) mutants.push_back(mutant_of(*fault));
  return mutants;
}

}  // namespace zeroproof::mutation
