#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/decoder_cell.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

class ModelRecorder;
class RankRecorder;

// Hooktrace files of a run of --model, one a rank, as RankTraces writes them of scenarios.
class DecoderTraces {
 public:
  // Of the ranks that run here: all for an empty list. `device` is what the header calls it.
  static Result<std::unique_ptr<DecoderTraces>> create(const std::string& path,
                                                       const DecoderCell& cell,
                                                       std::string_view device,
                                                       const std::vector<int>& ranks = {});
  explicit DecoderTraces(int world_size);  // see create()
  ~DecoderTraces();

  // By rank; a rank that runs elsewhere has no observers, and its recorder is null.
  std::vector<RankObservers> observers();
  std::vector<ModelRecorder*> recorders();
  // Files appear whole when it succeeds.
  Result<void> finish();

 private:
  std::vector<std::unique_ptr<RankRecorder>> ranks_;
};

}  // namespace zeroproof::train
