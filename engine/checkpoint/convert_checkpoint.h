#pragma once

#include <functional>
#include <string>

#include "engine/files/ranged_file_system.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

struct ConvertOptions {
  std::string tag = {};  // empty: the latest
  // Of shards: how many data-parallel ranks they are cut for, evenly by parameter. 0: whole
  // tensors, the universal layout.
  int data_ranks = 0;
  int tensor_ranks = 0;  // 0: as many as saved it; else partition rules say how states are cut
  std::function<bool()> should_stop = {};  // asked now and then
};

// Writes a checkpoint in another layout, or for other ranks, as the only checkpoint of the folder
// `to`. Values keep their bits. Every source file is compared with its checksum first; then a block
// of a tensor is held at a time, and where the number of tensor-parallel ranks changes an eighth of
// one of each that saved. A crash or an error leaves no checkpoint in `to`. Returns the path of the
// new one. Errors: usage and unreadable as those of loading and saving; failed when it was stopped.
Result<std::string> convert_checkpoint(RangedFileSystem& files, const std::string& from,
                                       const std::string& to, const ConvertOptions& options);

}  // namespace zeroproof
