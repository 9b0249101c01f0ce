#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zeroproof::cuda {

// An operation graph of cuDNN's backend API and the execution plan for it. The enumerators of
// cuDNN travel as int, so that this header needs no header of cuDNN. Every call throws RuntimeFault
// with cuDNN's own message.
class CudnnGraph {
 public:
  using Dims = std::array<std::int64_t, 4>;
  using Id = std::int64_t;

  // `handle`: cudnnHandle_t, which outlives the graph.
  explicit CudnnGraph(void* handle);
  ~CudnnGraph();
  CudnnGraph(const CudnnGraph&) = delete;
  CudnnGraph& operator=(const CudnnGraph&) = delete;

  // `type`: cudnnDataType_t. A tensor of memory is bound at every run; an inner one has none.
  Id memory(int type, const Dims& dims, const Dims& strides);
  Id inner(int type, const Dims& dims, const Dims& strides);
  Id inner(int type, const Dims& dims);  // dense, row-major
  Id scalar(float value);

  void matmul(Id a, Id b, Id c);
  // `mode`: cudnnPointwiseMode_t; operands in cuDNN's order x, b, t; `axis` of a generated index.
  struct Pointwise {
    int mode;
    int compute_type;
    std::int64_t axis = -1;
  };
  void pointwise(const Pointwise& what, const std::vector<Id>& operands, Id result);
  void reduce(int operation, Id x, Id y);  // cudnnReduceTensorOp_t
  void reshape(Id x, Id y);

  // Takes the heuristics' first engine that supports the graph; a deterministic one if asked.
  void finish(bool is_deterministic);
  std::size_t workspace_bytes() const;

  // On the handle's stream.
  void run(const std::vector<std::pair<Id, void*>>& bindings, void* workspace) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof::cuda
