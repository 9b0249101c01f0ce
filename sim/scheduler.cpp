#include "sim/scheduler.h"

#include <fmt/format.h>

#include "sim/schedule.h"
#include "sim/schedulers/exhaustive.h"
#include "sim/schedulers/fifo.h"
#include "sim/schedulers/random.h"
#include "sim/schedulers/replay.h"

namespace zeroproof {
namespace {

constexpr std::string_view kReplay = "replay:";

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
  if (spec == "dpor" || spec == "pct" || spec.starts_with("pct:")) {
    return fail(ErrorCode::cannot_run,
                fmt::format("--scheduler {}: comes with the simulator, which is not built yet; use "
                            "exhaustive or random",
                            spec));
  }
  return fail(ErrorCode::usage, fmt::format("--scheduler {}: unknown; use fifo, random, "
                                            "exhaustive or replay:FILE",
                                            spec));
}

}  // namespace zeroproof
