#include "model/check.h"

#include <fmt/format.h>

namespace zeroproof {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw CheckFailed(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, message));
}

}  // namespace zeroproof
