#include "sim/hook_order/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/fingerprint.h"
#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof::hook_order {
namespace {

constexpr std::int64_t kChunk = 64;                          // cells, a bit each
constexpr std::uint64_t kReplaced = 0x7ff8'5e91'ace0'0001U;  // a NaN that no cell holds

}  // namespace

void Digest::begin() {
  size_ = 0;
  number(static_cast<std::uint64_t>(device_.rank()));
}

void Digest::values(Span live) {
  const TensorImpl& tensor = *live.tensor;
  const double* const first = tensor.storage->elements.data() + tensor.offset_elements + live.begin;
  const auto count = static_cast<std::size_t>(live.elements);
  if (words_.size() - size_ < count) words_.resize(2 * words_.size() + count);
  std::uint64_t* const words = words_.data() + size_;
  std::memcpy(words, first, count * sizeof(double));
  size_ += count;
  if (!device_.is_idle()) forget_replaced(first, live.elements, words);
}

void Digest::forget_replaced(const double* first, std::int64_t count, std::uint64_t* words) const {
  for (std::int64_t begin = 0; begin < count; begin += kChunk) {
    std::uint64_t bits = device_.will_replace(first + begin, std::min(count - begin, kChunk));
    for (; bits != 0; bits &= bits - 1) words[begin + std::countr_zero(bits)] = kReplaced;
  }
}

Fingerprint Digest::end() const {
  return fingerprint_of(
      {reinterpret_cast<const char*>(words_.data()), size_ * sizeof(std::uint64_t)});
}

}  // namespace zeroproof::hook_order
