// The twin of props/mutation/cli/mutated_engine.cpp for a program without faults.
#include <fmt/format.h>

#include <algorithm>

#include "props/cli/mutated_engine.h"
#include "props/cli/sibling.h"
#include "props/cli/verb.h"

namespace zeroproof {
namespace {

bool is_mutation(const std::string& word) {
  return word == kMutation || word == kFormerMutation;
}

bool is_fault_flag(const std::string& word) {
  return word == "--fault" || word.starts_with("--fault=");
}

bool needs_faults(const std::vector<std::string>& words) {
  const std::string& verb = words.front();
  if (is_mutation(verb)) return true;
  if (verb == "help") return words.size() > 1 && is_mutation(words[1]);
  return (verb == "train" || verb == "record") && std::ranges::any_of(words, is_fault_flag);
}

}  // namespace

const char* sibling_for(const std::vector<std::string>& words) {
  return needs_faults(words) ? kMutationProgram : nullptr;
}

Result<program::EngineVariant> variant_of_fault(const std::string& id) {
  if (id.empty()) return program::EngineVariant{};
  return fail(ErrorCode::usage,
              fmt::format("the program was found with fault {}: zeroproof-mutation has it", id));
}

Result<void> set_fault(train::TrainCell&, const std::string& id) {
  if (id.empty()) return {};
  return tl::unexpected(no_sibling(kMutationProgram));
}

}  // namespace zeroproof
