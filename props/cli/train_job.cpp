#include "props/cli/train_job.h"

#include <fmt/format.h>

#include <utility>

#include "props/cli/common_flags.h"
#include "props/cli/environment.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kLongestTimeout = 1'000'000;

}  // namespace

void JobFlags::declare(Flags& flags) {
  flags.begin_group("several processes (torchrun, mpirun, srun)");
  flags.add_value("store", store_,
                  {"FOLDER",
                   "shared folder in which processes find each other (default: a store at "
                   "MASTER_ADDR and MASTER_PORT)"});
  flags.add_value("store-token", store_token_,
                  {"FILE",
                   "file (mode 600) with the secret of a store at MASTER_ADDR, of 16 bytes or more "
                   "(default: ZEROPROOF_STORE_TOKEN)"});
  flags.add_value("timeout", timeout_,
                  {"SECONDS", "time limit of a rank that waits for others (default 60)"});
}

Result<void> JobFlags::read(const std::string& runtime) {
  if (!timeout_.empty()) {
    const auto seconds = parse_count(timeout_, "train: --timeout");
    if (!seconds) return tl::unexpected(seconds.error());
    if (*seconds == 0 || *seconds > kLongestTimeout)
      return fail(ErrorCode::usage, fmt::format("train: --timeout {}: give 1 to {} seconds",
                                                timeout_, kLongestTimeout));
    timeout_ms_ = static_cast<std::int64_t>(*seconds) * 1000;
  }
  auto launch = read_launch(environment());
  if (!launch) return fail(launch.error().code, "train: " + launch.error().text);
  launch_ = std::move(*launch);
  if (has_several() && runtime == "sim")
    return fail(ErrorCode::usage,
                fmt::format("train: --runtime sim: one process simulates all ranks, and {} started "
                            "{} of them",
                            launch_->launcher, launch_->size));
  for (const auto& [flag, value] : {std::pair("store", &store_), {"store-token", &store_token_}})
    if (!has_several() && !value->empty())
      return fail(ErrorCode::usage,
                  fmt::format("train: --{}: this process is alone; start several with torchrun, "
                              "mpirun or srun",
                              flag));
  return {};
}

Result<void> JobFlags::check_alone(const char* flag) const {
  if (!has_several() || flag == nullptr) return {};
  return fail(ErrorCode::usage,
              fmt::format("train: --{}: with all ranks in one process; leave the launcher out, or "
                          "give one --scenario or --model",
                          flag));
}

Result<std::string> JobFlags::world_size(const std::string& given) const {
  if (!has_several()) return given;
  const std::string processes = std::to_string(launch_->size);
  if (given.empty() || given == processes) return processes;
  return fail(ErrorCode::usage,
              fmt::format("train: --world-size {}: {} started {} processes, a rank each: leave it "
                          "out",
                          given, launch_->launcher, processes));
}

Result<std::shared_ptr<Job>> JobFlags::join() const {
  if (!has_several()) return std::shared_ptr<Job>();
  auto job = Job::join(*launch_, {.store_folder = store_,
                                  .store_token_file = store_token_,
                                  .timeout = std::chrono::milliseconds(timeout_ms_)});
  if (!job) return fail(job.error().code, "train: " + job.error().text);
  return job;
}

void JobFlags::repeat_all(Session& session) const {
  if (!has_several()) return;
  session.program = fmt::format(
      "for r in $(seq 0 {}); do RANK=$r LOCAL_RANK=$r WORLD_SIZE={} LOCAL_WORLD_SIZE={} {}",
      launch_->size - 1, launch_->size, launch_->size, session.program);
  session.arguments += " & done; wait";
}

VerbResult quiet_result(ExitCode code, const std::string& error, const Session& session) {
  if (code != ExitCode::held) session.say(error);
  return VerbResult{.code = code};
}

}  // namespace zeroproof
