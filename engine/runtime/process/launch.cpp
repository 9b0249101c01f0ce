#include "zeroproof/engine/runtime/process/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <vector>

#include "model/number_in.h"

namespace zeroproof {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

// The innermost first: one that numbers a process of its own goes before one that started it.
constexpr std::array kLaunchers = {
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Launcher{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""},
};
constexpr const Launcher& kTorchrun = kLaunchers.front();
constexpr const Launcher& kSlurm = kLaunchers.back();
constexpr int kMostPorts = 65535;

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  // Empty: not set.
  std::string word(const char* name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  }

  bool is_set(const char* name) const { return !word(name).empty(); }

  Result<std::optional<int>> number(const char* name) const {
    const std::string text = word(name);
    if (text.empty()) return std::optional<int>();
    const auto value = number_in<int>(text);
    if (value.value_or(-1) < 0)
      return fail(ErrorCode::usage,
                  fmt::format("the variable {} is '{}': give a number from 0 on", name, text));
    return value;
  }

 private:
  const Environment& environment_;
};

// A script of sbatch and a shell of salloc have variables of the job and are no task of srun.
bool is_task_of_srun(const Reader& from) {
  return from.is_set(kSlurm.rank) && (from.is_set("SLURM_STEP_ID") || !from.is_set("SLURM_JOB_ID"));
}

bool is_meant(const Launcher& launcher, const Reader& from) {
  if (&launcher == &kSlurm) return is_task_of_srun(from);
  if (&launcher == &kTorchrun && from.is_set(launcher.local_rank)) return true;
  return from.is_set(launcher.rank) || from.is_set(launcher.size);
}

// Those that are set, joined by a dot.
std::string run_id_of(const Launcher& launcher, const Reader& from) {
  std::vector<const char*> names = {"PMI_JOBID"};
  if (&launcher == &kTorchrun) names = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"};
  if (&launcher == &kSlurm) names = {"SLURM_JOB_ID", "SLURM_STEP_ID"};
  if (&launcher == &kLaunchers[1]) names = {"PMIX_NAMESPACE"};
  std::vector<std::string> words;
  for (const char* name : names)
    if (from.is_set(name)) words.push_back(from.word(name));
  return fmt::format("{}", fmt::join(words, "."));
}

// Slurm says how many machines a step has.
std::optional<int> slurm_local_size(const Reader& from, int size) {
  const bool is_alone = from.word("SLURM_STEP_NUM_NODES") == "1" ||
                        (!from.is_set("SLURM_STEP_NUM_NODES") && from.word("SLURM_NNODES") == "1");
  return is_alone ? std::optional(size) : std::nullopt;
}

Result<void> read_master(const Reader& from, Launch& launch) {
  launch.master_address = from.word("MASTER_ADDR");
  launch.store_token = from.word("ZEROPROOF_STORE_TOKEN");
  const auto port = from.number("MASTER_PORT");
  if (!port) return tl::unexpected(port.error());
  launch.port = *port;
  if (!launch.port) return {};
  // The agent of torchrun has a store of its own there.
  if (from.word("TORCHELASTIC_USE_AGENT_STORE") == "True") ++*launch.port;
  if (*launch.port == 0 || *launch.port > kMostPorts)
    return fail(ErrorCode::usage, fmt::format("the variable MASTER_PORT is '{}': give 1 to {}",
                                              from.word("MASTER_PORT"), kMostPorts));
  return {};
}

Result<void> check_below(const char* name, std::optional<int> value, const char* of,
                         std::optional<int> limit) {
  if (!value || !limit || *value < *limit) return {};
  return fail(ErrorCode::usage,
              fmt::format("the variable {} is {}, and {} is {}: ranks count from 0 to one less",
                          name, *value, of, *limit));
}

Result<void> check_numbers(const Launcher& launcher, const Launch& launch) {
  if (auto fits = check_below(launcher.rank, launch.rank, launcher.size, launch.size); !fits)
    return fits;
  if (auto fits = check_below(launcher.local_rank, launch.local_rank, launcher.size, launch.size);
      !fits)
    return fits;
  if (auto fits = check_below(launcher.local_rank, launch.local_rank, launcher.local_size,
                              launch.local_size);
      !fits)
    return fits;
  if (!launch.local_size || *launch.local_size <= launch.size) return {};
  return fail(ErrorCode::usage,
              fmt::format("the variable {} is {}, and {} is {}: a machine has no more processes "
                          "than the job",
                          launcher.local_size, *launch.local_size, launcher.size, launch.size));
}

Result<Launch> read_one(const Launcher& launcher, const Reader& from) {
  const char* const size_name = &launcher == &kSlurm && from.is_set("SLURM_STEP_NUM_TASKS")
                                    ? "SLURM_STEP_NUM_TASKS"
                                    : launcher.size;
  const auto rank = from.number(launcher.rank);
  if (!rank) return tl::unexpected(rank.error());
  const auto size = from.number(size_name);
  if (!size) return tl::unexpected(size.error());
  if (!*rank || !*size)
    return fail(ErrorCode::usage,
                fmt::format("the variable {} of {} is not set, and others of its are: set {} and "
                            "{}, or neither to run alone",
                            *rank ? launcher.size : launcher.rank, launcher.name, launcher.rank,
                            launcher.size));
  Launch launch{.launcher = launcher.name, .rank = **rank, .size = **size};
  const auto local_rank = from.number(launcher.local_rank);
  if (!local_rank) return tl::unexpected(local_rank.error());
  launch.local_rank = *local_rank;
  const auto local_size = from.number(launcher.local_size);
  if (!local_size) return tl::unexpected(local_size.error());
  launch.local_size = &launcher == &kSlurm ? slurm_local_size(from, launch.size) : *local_size;
  launch.run_id = run_id_of(launcher, from);
  if (auto fits = check_numbers(launcher, launch); !fits) return tl::unexpected(fits.error());
  if (auto known = read_master(from, launch); !known) return tl::unexpected(known.error());
  return launch;
}

// A launcher may have started another one a machine: then it numbers fewer processes, and only
// torchrun says by a variable of its own that it is the inner one in any case.
bool is_outer(const Launch& outer, const Launch& inner, const Reader& from) {
  return from.is_set("TORCHELASTIC_RUN_ID") || outer.size < inner.size;
}

Error contradiction(const Launch& a, const Launch& b) {
  return {
      ErrorCode::usage,
      fmt::format("the variables of {} say rank {} of {}, those of {} rank {} of {}: unset those "
                  "that do not count",
                  a.launcher, a.rank, a.size, b.launcher, b.rank, b.size)};
}

}  // namespace

Result<std::optional<Launch>> read_launch(const Environment& environment) {
  const Reader from(environment);
  std::optional<Launch> found;
  for (const Launcher& launcher : kLaunchers) {
    if (!is_meant(launcher, from)) continue;
    auto launch = read_one(launcher, from);
    if (!launch) return tl::unexpected(launch.error());
    if (!found) {
      found = std::move(*launch);
      continue;
    }
    const bool is_same = launch->rank == found->rank && launch->size == found->size;
    if (!is_same && !is_outer(*launch, *found, from))
      return tl::unexpected(contradiction(*found, *launch));
  }
  return found;
}

}  // namespace zeroproof
