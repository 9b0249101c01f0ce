#pragma once

#include <span>

#include "engine/zero/flat_group.h"
#include "engine/zero/ipg_bucket.h"

namespace zeroproof {

// The reduction of a bucket's gradients in stages 1 and 2 (docs/spec/zero.md 2.17), on the
// reduction stream. Every rank makes the same calls with the same entries.
class BucketReducer {
 public:
  // Both must outlive it.
  BucketReducer(ZeroContext& context, const FlatSlots& slots) : context_(context), slots_(slots) {}

  // What the bucket holds becomes the average over the ranks: everywhere, or with reduce_scatter at
  // the owners of each part alone.
  void average(IpgBucket& target);

 private:
  void all_reduce(Stream& stream, std::span<const IpgBucket::Entry> entries, Span data,
                  DType communication_dtype);
  void reduce_to_owners(Stream& stream, const IpgBucket& target);
  // `sent`: its values as they travel; of the bucket, or of the entry.
  void reduce_to_owners(Stream& stream, const IpgBucket& target, const Span& sent);
  void reduce_to_owners(Stream& stream, const IpgBucket::Entry& entry, const Span& sent);
  // A collective that moves each of the entries, from this element of the parameter on.
  CollectiveForm form_of(std::span<const IpgBucket::Entry> entries, std::int64_t begin = 0) const;

  ZeroContext& context_;
  const FlatSlots& slots_;
};

}  // namespace zeroproof
