#include "props/program/scheduler_document.h"

#include <nlohmann/json.hpp>
#include <variant>

namespace zeroproof::program {
namespace {

using Json = nlohmann::json;

Json values(const GroupValues& values) {
  return std::visit([](const auto& given) { return Json(given); }, values);
}

void add(Json& json, const Warmup& warmup) {
  json["warmup_num_steps"] = warmup.warmup_num_steps;
  json["warmup_type"] = warmup.warmup_type == WarmupType::linear ? "linear" : "log";
}

template <class Options>
void add_bounds(Json& json, const Options& options) {
  json["warmup_min_lr"] = values(options.warmup_min_lr);
  json["warmup_max_lr"] = options.warmup_max_lr ? values(*options.warmup_max_lr) : Json();
  add(json, options.warmup);
}

struct Params {
  Json operator()(const LrRangeTestOptions& options) const {
    return {{"lr_range_test_min_lr", values(options.lr_range_test_min_lr)},
            {"lr_range_test_step_size", options.lr_range_test_step_size},
            {"lr_range_test_step_rate", options.lr_range_test_step_rate},
            {"lr_range_test_staircase", options.lr_range_test_staircase}};
  }
  Json operator()(const OneCycleOptions& options) const {
    Json json = {{"cycle_min_lr", values(options.cycle_min_lr)},
                 {"cycle_max_lr", values(options.cycle_max_lr)},
                 {"decay_lr_rate", options.decay_lr_rate},
                 {"cycle_first_step_size", options.cycle_first_step_size},
                 {"cycle_first_stair_count", options.cycle_first_stair_count},
                 {"decay_step_size", options.decay_step_size},
                 {"cycle_momentum", options.cycle_momentum},
                 {"cycle_min_mom", values(options.cycle_min_mom)},
                 {"cycle_max_mom", values(options.cycle_max_mom)},
                 {"decay_mom_rate", options.decay_mom_rate}};
    if (options.cycle_second_step_size)
      json["cycle_second_step_size"] = *options.cycle_second_step_size;
    if (options.cycle_second_stair_count)
      json["cycle_second_stair_count"] = *options.cycle_second_stair_count;
    return json;
  }
  Json operator()(const WarmupLrOptions& options) const {
    Json json;
    add_bounds(json, options);
    return json;
  }
  Json operator()(const WarmupDecayLrOptions& options) const {
    Json json = {{"total_num_steps", options.total_num_steps}};
    add_bounds(json, options);
    return json;
  }
  Json operator()(const WarmupCosineLrOptions& options) const {
    Json json = {{"total_num_steps", options.total_num_steps},
                 {"warmup_min_ratio", options.warmup_min_ratio},
                 {"cos_min_ratio", options.cos_min_ratio}};
    add(json, options.warmup);
    return json;
  }
};

}  // namespace

std::string scheduler_document(const SchedulerConfig& config) {
  Json params = std::visit(Params{}, config.options);
  params["last_batch_iteration"] = config.last_batch_iteration;
  return Json{{"type", scheduler_name(config)}, {"params", params}}.dump();
}

}  // namespace zeroproof::program
