#include "engine/zero/ipg_report.h"

#include <fmt/format.h>

namespace zeroproof {

namespace {

// floor(100 * rest / size) for rest < size, by adding: 100 * rest may not fit.
std::int64_t percent_of(std::int64_t rest, std::int64_t size) {
  std::int64_t percent = 0;
  std::int64_t sum = 0;  // below size
  for (int i = 0; i < 100; ++i) {
    const bool is_over = sum >= size - rest;
    sum += is_over ? rest - size : rest;
    if (is_over) ++percent;
  }
  return percent;
}

}  // namespace

std::int64_t ipg_percent(const IpgUse& use) {
  const std::int64_t size = use.reduce_bucket_size;
  const std::int64_t used = use.elements + use.incoming;
  if (size == 0) return used > 0 ? 100 : 0;
  return used / size * 100 + percent_of(used % size, size);
}

std::string ipg_report(const IpgUse& use) {
  return fmt::format("{} bucket: {} elements + {} incoming of {}, {} percent",
                     dtype_name(use.dtype), use.elements, use.incoming, use.reduce_bucket_size,
                     ipg_percent(use));
}

}  // namespace zeroproof
