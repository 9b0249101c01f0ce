#pragma once

#include <pcg_random.hpp>

#include "tests/sim/random_program.h"

namespace zeroproof::search_test {

// Two to four processes; locks are mostly given back, counters mostly posted often enough.
inline Code random_code(std::uint64_t seed) {
  pcg32 random(seed);
  Code code(2 + random(3));
  const std::uint32_t length = code.size() == 2 ? 5 : code.size() == 3 ? 4 : 3;
  for (std::uint32_t process = 0; process < code.size(); ++process) {
    auto& lines = code[process];
    while (lines.size() < length) {
      const auto object = static_cast<std::uint8_t>(random(2));
      const auto value = static_cast<std::uint8_t>(random(3));
      const bool is_guarded = random(4) == 0;
      const auto poster =
          static_cast<std::uint8_t>(random(static_cast<std::uint32_t>(code.size())));
      switch (random(9)) {
        case 0:
          lines.push_back({Op::read, object, 0, is_guarded});
          break;
        case 1:
          lines.push_back({Op::write, object, value, is_guarded});
          break;
        case 2:
          lines.push_back({Op::add, object, 0, is_guarded});
          break;
        case 3:
          lines.push_back({Op::lock, object, 0, false});
          if (random(2) == 0) lines.push_back({Op::add, object, 0, false});
          if (random(8) != 0) lines.push_back({Op::unlock, object, 0, false});
          break;
        case 4:
          lines.push_back({Op::post, static_cast<std::uint8_t>(process), 0, is_guarded});
          break;
        case 5:
          if (poster == process) break;
          lines.push_back({Op::await, poster, static_cast<std::uint8_t>(1 + random(2)), false});
          break;
        case 6:
          lines.push_back({Op::choose, 0, 0, false});
          break;
        case 7:
          if (poster != process) lines.push_back({Op::either, object, poster, false});
          break;
        default:
          lines.push_back({Op::check, object, value, is_guarded});
          break;
      }
    }
  }
  return code;
}

}  // namespace zeroproof::search_test
