#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/resharded_state.h"
#include "engine/checkpoint/stored_files.h"

namespace zeroproof {

// The states of a checkpoint of either layout, as ranks of any number of tensor-parallel ones have
// them. What it gives points into it.
class SavedParts {
 public:
  using Key = std::pair<std::string, std::string>;  // parameter, state

  // `files` must outlive it. Errors as read_stored_parts().
  static Result<SavedParts> open(RangedFileSystem& files, FoundCheckpoint checkpoint);

  const std::string& path() const { return checkpoint_.path; }
  const Manifest& manifest() const { return checkpoint_.manifest; }

  // The partition rules of so many tensor-parallel ranks. Error: a parameter without a rule, or
  // whose rule does not cut it for so many.
  Result<std::map<std::string, PartitionRule>> rules_for(int tensor_size) const;

  std::vector<Key> keys() const;  // of all states, weights first
  Result<ReshardedState> state(const Key& key, const ParallelPlace& place) const;
  // The optimizer's steps by parameter, where no state "step" says them.
  const std::map<std::string, std::int64_t>& steps_of(const ParallelPlace& place) const;

 private:
  bool is_of_as_many(int tensor_size) const { return manifest().tensor_size == tensor_size; }
  std::size_t index_of(const ParallelPlace& place) const;
  const StoredState* find(std::size_t part, const Key& key) const;

  RangedFileSystem* files_ = nullptr;
  FoundCheckpoint checkpoint_;
  std::vector<StoredPart> parts_;                      // in the order of places_of()
  std::vector<std::map<Key, std::size_t>> positions_;  // in the states of each part
};

}  // namespace zeroproof
