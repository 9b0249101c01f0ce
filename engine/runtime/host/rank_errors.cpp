#include "engine/runtime/host/rank_errors.h"

#include <fmt/format.h>

#include "engine/runtime/host/rendezvous.h"

namespace zeroproof::host {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

bool is_abort(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const GroupAborted&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string abort_reason(int rank, const std::exception_ptr& error) {
  const std::string text = text_of(error);
  return is_abort(error) ? text : fmt::format("rank {} failed: {}", rank, text);
}

void rethrow_first(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    if (!first || (is_abort(first) && !is_abort(error))) first = error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace zeroproof::host
