#include "model/product_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zeroproof/model/autograd_error.h"

namespace zeroproof {

void check_factors(const Tensor& a, const Tensor& b, std::size_t dims) {
  const bool has_dims = a.sizes().size() == dims && b.sizes().size() == dims;
  if (has_dims && a.sizes()[dims - 1] == b.sizes()[dims - 2] &&
      (dims == 2 || a.sizes()[0] == b.sizes()[0]))
    return;
  throw AutogradError(fmt::format("mat1 and mat2 shapes cannot be multiplied ([{}] and [{}])",
                                  fmt::join(a.sizes(), ","), fmt::join(b.sizes(), ",")));
}

}  // namespace zeroproof
