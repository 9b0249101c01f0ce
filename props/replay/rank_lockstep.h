#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/story_level.h"

namespace zeroproof {

// One rank's file of a run, and what the first reading told of it.
struct RankFile {
  std::string path;
  const TraceStory* story = nullptr;
};

// Reads the files of one run side by side, collective by collective and gradient hook by gradient
// hook, and names the first place where the ranks part: a collective that one of them left out or
// had in excess, another operation, another size, another parameter, or another order of hooks.
// Memory is bounded by how far the ranks' collectives of different groups drift apart. nullopt:
// they agree as far as every file goes.
std::optional<Diagnosis> first_divergence(const std::vector<RankFile>& ranks);

}  // namespace zeroproof
