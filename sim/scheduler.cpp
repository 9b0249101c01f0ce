#include "sim/scheduler.h"

#include <fmt/format.h>

#include "sim/schedule.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/fifo.h"
#include "sim/schedulers/pct.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/replay.h"

namespace zeroproof {
namespace {

constexpr std::string_view kReplay = "replay:";
constexpr std::string_view kPct = "pct:";

}  // namespace

Result<std::unique_ptr<Scheduler>> make_scheduler(std::string_view spec, std::uint64_t seed) {
  if (spec == "fifo") return std::make_unique<FifoScheduler>();
  if (spec == "random") return std::make_unique<RandomScheduler>(seed);
  if (spec == "exhaustive") return std::make_unique<ExhaustiveScheduler>();
  if (spec.starts_with(kReplay)) {
    auto schedule = read_schedule_file(std::string(spec.substr(kReplay.size())));
    if (!schedule) return tl::unexpected(schedule.error());
    return std::make_unique<ReplayScheduler>(std::move(schedule->choices));
  }
  if (spec.starts_with(kPct)) {
    const std::string_view depth = spec.substr(kPct.size());
    if (depth.size() != 1 || depth[0] < '1' || depth[0] > '9')
      return fail(ErrorCode::usage,
                  fmt::format("--scheduler {}: give a depth from 1 to 9, like pct:3", spec));
    return std::make_unique<PctScheduler>(depth[0] - '0', seed);
  }
  return fail(ErrorCode::usage, fmt::format("--scheduler {}: unknown; use fifo, random, "
                                            "pct:D, exhaustive or replay:FILE",
                                            spec));
}

}  // namespace zeroproof
