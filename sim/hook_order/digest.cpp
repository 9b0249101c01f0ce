#include "sim/hook_order/digest.h"

#include <algorithm>
#include <bit>

#include "model/tensor_impl.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::int64_t kChunk = 64;  // cells, a bit each

}  // namespace

void Digest::replace(Told told) {
  if (at_ == told_.size()) told_.emplace_back();
  facts_.remove_all(told_[at_].fact);
  if (told.is_fact) {
    Facts fact;
    fact.add(first_place_ + at_, told.value);
    told.fact = fact.sum();
    facts_.add_all(told.fact);
  }
  told_[at_++] = told;
}

void Digest::values(Span live) {
  const TensorImpl& tensor = *live.tensor;
  const double* const first = tensor.storage->elements.data() + tensor.offset_elements + live.begin;
  for (std::int64_t begin = 0; begin < live.elements; begin += kChunk)
    add_values(first + begin, std::min(live.elements - begin, kChunk));
}

void Digest::add_values(const double* first, std::int64_t count) {
  const std::uint64_t replaced = device_.is_idle() ? 0 : device_.will_replace(first, count);
  for (std::int64_t i = 0; i < count; ++i)
    if ((replaced >> i & 1) == 0) {
      tell(std::bit_cast<std::uint64_t>(first[i]));
    } else {
      tell_nothing();
    }
}

// What was told behind this the last time is not the case any more.
const Fingerprint& Digest::end() {
  for (; told_.size() > at_; told_.pop_back()) facts_.remove_all(told_.back().fact);
  return facts_.sum();
}

}  // namespace zeroproof::hook_order
