#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "props/replay/story_level.h"

namespace zeroproof {

// The file of one rank and the numbers it recorded.
struct NumbersFile {
  std::string path;
  const TraceStory* story = nullptr;  // never null
};

// The first step at which ranks that hold the same parameters differ, in values or in gradients;
// and the sharded job that clips by the norm of its own part. Reads two files again for the name of
// the parameter. Empty when the numbers agree or were not recorded.
std::vector<Diagnosis> compare_numbers(const std::vector<NumbersFile>& files);

}  // namespace zeroproof
