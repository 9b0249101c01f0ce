#include "props/boundary_book.h"

#include "props/mark.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {

void BoundaryBook::read_mark(std::string_view label) {
  constexpr std::string_view kBoundary = "gradient_accumulation_boundary:";
  if (const auto steps = mark_number(label, "gradient_accumulation_steps"))
    steps_ = static_cast<std::int64_t>(*steps);
  if (const auto managed = mark_number(label, "managed_gradient_accumulation"))
    is_managed_ = *managed != 0;
  if (!label.starts_with(kBoundary)) return;
  const std::string_view word = label.substr(kBoundary.size());
  has_marks_ = true;
  if (word == "true") forced_ = true;
  if (word == "false") forced_ = false;
  if (word == "auto") forced_.reset();
}

std::optional<bool> BoundaryBook::is_boundary(std::int64_t micro_step) const {
  if (forced_) return forced_;
  if (steps_ <= 0 || micro_step < 0) return std::nullopt;
  return (micro_step + 1) % steps_ == 0;
}

bool BoundaryBook::is_set_out_of_sight(std::int64_t backwards) const {
  return !has_marks_ && steps_ > 1 && backwards > 1;
}

void BoundaryBook::append_state(std::string& bytes) const {
  append_bytes(bytes, steps_);
  append_bytes(bytes, is_managed_);
  append_bytes(bytes, has_marks_);
  append_bytes(bytes, forced_.has_value() ? 1 + static_cast<std::int64_t>(*forced_) : 0);
}

}  // namespace zeroproof
