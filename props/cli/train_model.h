#pragma once

#include <string>

#include "props/cli/flags.h"
#include "props/cli/verb.h"
#include "props/train/decoder_report.h"
#include "props/train/train_cell.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// The flags of `train` that belong to --model, and what they mean.
class ModelFlags {
 public:
  void declare(Flags& flags);

  bool is_given() const { return !model_.empty(); }
  // An error for a flag that has no effect without --model.
  Result<void> check_alone() const;

  // What the two kinds of cells share comes from `cell`; the seed is the session's.
  Result<train::DecoderCell> cell_of(const train::TrainCell& cell, std::uint64_t seed) const;
  // An error for what no run can do.
  static Result<void> check_together(const train::DecoderCell& cell,
                                     const train::DecoderOptions& options);
  // What the flags of --time say.
  Result<train::DecoderOptions> options(std::int64_t steps) const;

 private:
  std::string model_;
  std::string batch_;
  std::string length_;
  std::string warmup_;
  std::string attention_;
  std::string layers_;
  std::string initial_;
  bool is_timed_ = false;
  bool leaves_out_collectives_ = false;
  bool uses_cuda_graph_ = false;
};

VerbResult result_of(train::DecoderReport made, const Session& session);

}  // namespace zeroproof
