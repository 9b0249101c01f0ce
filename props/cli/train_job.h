#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "props/cli/flags.h"
#include "props/cli/verb.h"
#include "zeroproof/engine/runtime/process/job.h"

namespace zeroproof {

// The flags and variables that make `train` one process of several.
class JobFlags {
 public:
  void declare(Flags& flags);

  // To be called before anything below: who launched this process. Errors as of read_launch, and of
  // the flags' words; `runtime` is that of the command line.
  Result<void> read(const std::string& runtime);

  bool has_several() const { return launch_ && launch_->size > 1; }
  // An error where there are several and `flag` is one that wants all ranks in one; null: no flag.
  Result<void> check_alone(const char* flag) const;
  // The ranks of the world: `given`, by a flag, is empty or has to be the number of processes.
  Result<std::string> world_size(const std::string& given) const;
  std::int64_t timeout_ms() const { return timeout_ms_; }
  // Null where this process is alone.
  Result<std::shared_ptr<Job>> join() const;
  // What a shell has to run to start all processes again, on this machine.
  void repeat_all(Session& session) const;

 private:
  std::string store_;
  std::string store_token_;
  std::string timeout_;
  std::int64_t timeout_ms_ = 60'000;
  std::optional<Launch> launch_;
};

// Of a process that leaves the report to rank 0: where it ends badly it says at least why.
VerbResult quiet_result(ExitCode code, const std::string& error, const Session& session);

}  // namespace zeroproof
