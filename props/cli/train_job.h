#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/runtime/process/job.h"
#include "props/cli/flags.h"

namespace zeroproof {

// The flags and variables that make `train` one process of several.
class JobFlags {
 public:
  void declare(Flags& flags);

  // To be called before anything below: who launched this process. Errors as of read_launch, and of
  // the flags' words; `runtime` is that of the command line.
  Result<void> read(const std::string& runtime);

  bool has_several() const { return launch_ && launch_->size > 1; }
  // The ranks of the world: `given`, by a flag, is empty or has to be the number of processes.
  Result<std::string> world_size(const std::string& given) const;
  std::int64_t timeout_ms() const { return timeout_ms_; }
  // Null where this process is alone.
  Result<std::shared_ptr<Job>> join() const;

 private:
  std::string store_;
  std::string timeout_;
  std::int64_t timeout_ms_ = 60'000;
  std::optional<Launch> launch_;
};

}  // namespace zeroproof
