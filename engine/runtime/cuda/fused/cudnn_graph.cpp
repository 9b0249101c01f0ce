#include "engine/runtime/cuda/fused/cudnn_graph.h"

#include <cudnn.h>

#include <algorithm>
#include <map>
#include <string>

#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> last{};
  cudnnGetLastErrorString(last.data(), last.size());
  throw RuntimeFault(std::string("cuDNN: ") + what + ": " + cudnnGetErrorString(status) + ": " +
                     last.data());
}

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "a descriptor");
  }
  ~Descriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    check(cudnnBackendSetAttribute(raw_, name, type, 1, &value), "an attribute");
  }
  template <class T>
  void set_all(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               const T& values) {
    check(cudnnBackendSetAttribute(raw_, name, type, static_cast<std::int64_t>(values.size()),
                                   values.data()),
          "an array attribute");
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  void finish(const char* what) { check(cudnnBackendFinalize(raw_), what); }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

// The answers of one heuristic mode, best first; none when the mode does not know the graph.
std::vector<Descriptor> engine_configs(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.raw()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "the number of engines");
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().raw());
  }
  check(cudnnBackendGetAttribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "the engines");
  configs.erase(configs.begin() + count, configs.end());
  return configs;
}

bool is_engine_deterministic(const Descriptor& config) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.raw(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        "the engine of a configuration");
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
        "the notes of an engine");
  const auto last = notes.begin() + std::min<std::int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  return std::find(notes.begin(), last, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) == last;
}

}  // namespace

struct CudnnGraph::State {
  cudnnHandle_t handle = nullptr;
  std::vector<Descriptor> tensors;  // tensor i has the id i + 1
  std::map<Id, float> scalars;
  std::vector<Descriptor> parts;  // of the operations
  std::vector<Descriptor> operations;
  std::unique_ptr<Descriptor> graph;
  std::unique_ptr<Descriptor> plan;

  const Descriptor& tensor(Id id) const { return tensors[static_cast<std::size_t>(id - 1)]; }

  enum class Kind { memory, inner, scalar };
  Id add_tensor(Kind kind, int type, const Dims& dims, const Dims& strides) {
    const auto id = static_cast<Id>(tensors.size()) + 1;
    Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
               static_cast<cudnnDataType_t>(type));
    tensor.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims);
    tensor.set_all(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, kind == Kind::inner);
    if (kind == Kind::scalar) {
      tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
    }
    tensor.finish("a tensor");
    tensors.push_back(std::move(tensor));
    return id;
  }

  // Whether the plan for a configuration could be made.
  bool try_plan(const Descriptor& config) {
    auto candidate = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    candidate->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    candidate->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (cudnnBackendFinalize(candidate->raw()) != CUDNN_STATUS_SUCCESS) return false;
    plan = std::move(candidate);
    return true;
  }
};

CudnnGraph::CudnnGraph(void* handle) : state_(std::make_unique<State>()) {
  state_->handle = static_cast<cudnnHandle_t>(handle);
}

CudnnGraph::~CudnnGraph() = default;

CudnnGraph::Id CudnnGraph::memory(int type, const Dims& dims, const Dims& strides) {
  return state_->add_tensor(State::Kind::memory, type, dims, strides);
}

CudnnGraph::Id CudnnGraph::inner(int type, const Dims& dims, const Dims& strides) {
  return state_->add_tensor(State::Kind::inner, type, dims, strides);
}

CudnnGraph::Id CudnnGraph::inner(int type, const Dims& dims) {
  return inner(type, dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1});
}

CudnnGraph::Id CudnnGraph::scalar(float value) {
  const Dims one = {1, 1, 1, 1};
  const Id id = state_->add_tensor(State::Kind::scalar, CUDNN_DATA_FLOAT, one, one);
  state_->scalars[id] = value;
  return id;
}

void CudnnGraph::matmul(Id a, Id b, Id c) {
  Descriptor part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  part.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  part.finish("a product");
  Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, state_->tensor(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, state_->tensor(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, state_->tensor(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, part);
  operation.finish("a product's operation");
  state_->parts.push_back(std::move(part));
  state_->operations.push_back(std::move(operation));
}

void CudnnGraph::pointwise(const Pointwise& what, const std::vector<Id>& operands, Id result) {
  Descriptor part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  part.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
           static_cast<cudnnPointwiseMode_t>(what.mode));
  part.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
           static_cast<cudnnDataType_t>(what.compute_type));
  if (what.axis >= 0) part.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, what.axis);
  part.finish("a pointwise function");
  constexpr std::array kPorts = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, part);
  for (std::size_t i = 0; i < operands.size() && i < kPorts.size(); ++i) {
    operation.set(kPorts[i], state_->tensor(operands[i]));
  }
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, state_->tensor(result));
  operation.finish("a pointwise operation");
  state_->parts.push_back(std::move(part));
  state_->operations.push_back(std::move(operation));
}

void CudnnGraph::reduce(int operation_kind, Id x, Id y) {
  Descriptor part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  part.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  part.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
           static_cast<cudnnReduceTensorOp_t>(operation_kind));
  part.finish("a reduction");
  Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, part);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, state_->tensor(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, state_->tensor(y));
  operation.finish("a reduction's operation");
  state_->parts.push_back(std::move(part));
  state_->operations.push_back(std::move(operation));
}

void CudnnGraph::reshape(Id x, Id y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, state_->tensor(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, state_->tensor(y));
  operation.finish("a reshape");
  state_->operations.push_back(std::move(operation));
}

void CudnnGraph::finish(bool is_deterministic) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : state_->operations) raw.push_back(operation.raw());
  state_->graph = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  state_->graph->set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
  state_->graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, state_->handle);
  state_->graph->finish("an operation graph");
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : engine_configs(*state_->graph, mode)) {
      if (is_deterministic && !is_engine_deterministic(config)) continue;
      if (state_->try_plan(config)) return;
    }
  }
  check(CUDNN_STATUS_NOT_SUPPORTED, "no engine for an operation graph");
}

std::size_t CudnnGraph::workspace_bytes() const {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(state_->plan->raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "the workspace of a plan");
  return static_cast<std::size_t>(bytes);
}

void CudnnGraph::run(const std::vector<std::pair<Id, void*>>& bindings, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, pointer] : bindings) {
    ids.push_back(id);
    pointers.push_back(pointer);
  }
  for (auto& [id, value] : state_->scalars) {
    ids.push_back(id);
    pointers.push_back(&value);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finish("a variant pack");
  check(cudnnBackendExecute(state_->handle, state_->plan->raw(), pack.raw()), "an execution");
}

}  // namespace zeroproof::cuda
