#include "engine/zero/bucket_events.h"

#include <utility>

namespace zeroproof {

void report_bucket_add(const Events& events, const ZeroParameter& parameter) {
  HookEvent event;
  event.kind = EventKind::bucket_add;
  event.name = events.name(dtype_name(parameter.communication_dtype));
  event.param = parameter.name_id;
  event.numel = parameter.elements;
  events.send(std::move(event));
}

void report_bucket_flush(const Events& events, DType communication_dtype, std::int64_t elements,
                         std::vector<NameId> params) {
  HookEvent event;
  event.kind = EventKind::bucket_flush;
  event.name = events.name(dtype_name(communication_dtype));
  event.numel = elements;
  event.params = std::move(params);
  events.send(std::move(event));
}

}  // namespace zeroproof
