#pragma once

#include <cstdint>
#include <vector>

#include "engine/events.h"
#include "engine/zero/zero_parameter.h"

namespace zeroproof {

// What buckets say of themselves, in every stage; for callers that checked events.is_on().

// bucket.add: the gradient has its place.
void report_bucket_add(const Events& events, const ZeroParameter& parameter);

// bucket.flush: what `params` brought, `elements` in all, is about to be reduced.
void report_bucket_flush(const Events& events, DType communication_dtype, std::int64_t elements,
                         std::vector<NameId> params);

}  // namespace zeroproof
