#include <fmt/format.h>

#include "zeroproof/engine/zero_config.h"

namespace zeroproof {
namespace {

// Whether micro * steps * ranks is the train batch size, without overflow.
bool is_product(std::int64_t train, std::int64_t micro, std::int64_t steps, std::int64_t ranks) {
  return train % micro == 0 && train / micro % steps == 0 && train / micro / steps == ranks;
}

}  // namespace

Result<ZeroConfig> with_batch_sizes(const ParsedConfig& parsed, std::int64_t data_parallel_size) {
  const BatchSizes& given = parsed.batch_sizes;
  ZeroConfig config = parsed.config;
  if (!given.train_batch_size) return config;
  const std::int64_t train = *given.train_batch_size;
  std::int64_t& micro = config.train_micro_batch_size_per_gpu;
  std::int64_t& steps = config.gradient_accumulation_steps;
  if (!given.train_micro_batch_size_per_gpu) micro = train / data_parallel_size / steps;
  if (given.train_micro_batch_size_per_gpu && !given.gradient_accumulation_steps) {
    steps = train / micro / data_parallel_size;
  }
  if (micro >= 1 && steps >= 1 && is_product(train, micro, steps, data_parallel_size)) {
    return config;
  }
  return fail(ErrorCode::usage,
              fmt::format("/train_batch_size is {}, not train_micro_batch_size_per_gpu {} x "
                          "gradient_accumulation_steps {} x {} data-parallel ranks; change one",
                          train, micro, steps, data_parallel_size));
}

}  // namespace zeroproof
