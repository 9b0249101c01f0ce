#include "props/interpreter/checkpoint_state.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/checkpoint/file_names.h"

namespace zeroproof::program {
namespace {

bool has_same_tensors(std::vector<FullTensor> a, std::vector<FullTensor> b) {
  std::ranges::sort(a, {}, &FullTensor::name);
  std::ranges::sort(b, {}, &FullTensor::name);
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return std::ranges::equal(a, b, [&](const FullTensor& one, const FullTensor& other) {
    return one.name == other.name && one.sizes == other.sizes &&
           std::ranges::equal(one.values, other.values, {}, bits, bits);
  });
}

}  // namespace

bool is_same_state(const TrainingState& a, const TrainingState& b) {
  return has_same_tensors(a.parameters, b.parameters) &&
         has_same_tensors(a.optimizer_state, b.optimizer_state) && a.groups == b.groups &&
         a.counters == b.counters && a.scheduler == b.scheduler && a.loss_scaler == b.loss_scaler;
}

bool has_leftovers(FileSystem& files, const std::string& folder) {
  const std::string pointer = std::string(kLatestFile) + ".";
  const auto entries = files.list(folder).value_or(std::vector<std::string>{});
  return std::ranges::any_of(entries, [&](const std::string& entry) {
    return entry == kSavingFolder || entry.starts_with(pointer);
  });
}

}  // namespace zeroproof::program
