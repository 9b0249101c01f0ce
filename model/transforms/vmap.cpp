#include <algorithm>
#include <string>
#include <utility>

#include "model/transforms/layer.h"
#include "model/transforms/transforms.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::func {
namespace {

using InDims = std::vector<std::optional<std::int64_t>>;

InDims checked_dims(const InDims& given, const TensorList& args) {
  if (args.empty()) throw AutogradError("vmap: got no inputs");
  InDims dims = given.empty() ? InDims(args.size(), 0) : given;
  if (dims.size() != args.size())
    throw AutogradError("vmap: in_dims is not compatible with the structure of inputs");
  if (std::none_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.has_value(); }))
    throw AutogradError("vmap: at least one input must be mapped over");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i]) continue;
    const auto rank = static_cast<std::int64_t>(args[i].sizes().size());
    if (*dims[i] < -rank || *dims[i] >= rank)
      throw AutogradError("vmap: Got in_dim=" + std::to_string(*dims[i]) +
                          " for an input of dimensionality " + std::to_string(rank));
    if (*dims[i] < 0) *dims[i] += rank;
  }
  return dims;
}

std::int64_t batch_size_of(const InDims& dims, const TensorList& args) {
  std::optional<std::int64_t> size;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!dims[i]) continue;
    const std::int64_t own = args[i].sizes()[static_cast<std::size_t>(*dims[i])];
    if (size.value_or(own) != own)
      throw AutogradError(
          "vmap: Expected all tensors to have the same size in the mapped dimension");
    size = own;
  }
  return *size;
}

// The output with the batch at the given place, repeated if it does not depend on it.
Tensor with_batch_at(Autograd& ag, const Tensor& output, const TransformFrame& frame,
                     std::int64_t dim) {
  if (!output.is_defined()) throw AutogradError("vmap: the function must only return Tensors");
  const Tensor live = without_dead_wrappers(output);
  const auto rank = static_cast<std::int64_t>(live.sizes().size()) + 1;
  if (dim < -rank || dim >= rank)
    throw AutogradError("vmap: out_dim " + std::to_string(dim) + " is out of range");
  Shape sizes = live.sizes();
  sizes.insert(sizes.begin(), frame.batch_size);
  const Tensor whole = is_of_level(live, frame) ? unwrap(live, frame) : expand(ag, live, sizes);
  const std::int64_t place = dim < 0 ? dim + rank : dim;
  return place == 0 ? whole : movedim(ag, whole, 0, place);
}

TensorList call_mapped(Autograd& ag, const Function& f, const VmapDims& dims,
                       const TensorList& args) {
  const InDims in = checked_dims(dims.in, args);
  TensorList batched;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Tensor live = without_dead_wrappers(args[i]);
    batched.push_back(in[i].value_or(0) == 0 ? live : movedim(ag, live, *in[i], 0));
  }
  const TransformLevel level(ag, TransformKind::vmap, batch_size_of(in, args));
  for (std::size_t i = 0; i < args.size(); ++i)
    if (in[i]) batched[i] = wrap(level.frame(), batched[i]);
  TensorList outputs = f(batched);
  if (!dims.out.empty() && dims.out.size() != outputs.size())
    throw AutogradError("vmap: out_dims is not compatible with the structure of outputs");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = with_batch_at(ag, outputs[i], level.frame(), dims.out.empty() ? 0 : dims.out[i]);
  return outputs;
}

}  // namespace

Function vmap(Autograd& ag, Function f, VmapDims dims) {
  return [&ag, f = std::move(f), dims = std::move(dims)](const TensorList& args) {
    return call_mapped(ag, f, dims, args);
  };
}

UnaryFunction vmap(Autograd& ag, UnaryFunction f) {
  return unlifted(vmap(ag, lifted(std::move(f)), VmapDims{}));
}

}  // namespace zeroproof::func
