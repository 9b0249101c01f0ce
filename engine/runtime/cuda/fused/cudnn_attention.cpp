#include "engine/runtime/cuda/fused/cudnn_attention.h"

#include <cudnn.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "engine/runtime/cuda/fused/cudnn_graph.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::cuda {
namespace {

using Id = CudnnGraph::Id;
using Dims = CudnnGraph::Dims;

constexpr std::int64_t kWidth = 64;
constexpr float kScale = 0.125F;

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw RuntimeFault(std::string("cuDNN: ") + what + ": " + cudnnGetErrorString(status));
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// The shapes and strides that both graphs share: [batch, heads, seq, 64] over token strides.
struct Shapes {
  explicit Shapes(const AttentionShape& shape)
      : batch(shape.batch), heads(shape.heads), seq(shape.seq) {}

  Dims rows() const { return {batch, heads, seq, kWidth}; }
  Dims columns() const { return {batch, heads, kWidth, seq}; }
  Dims scores() const { return {batch, heads, seq, seq}; }
  Dims statistics() const { return {batch, heads, seq, 1}; }
  Dims row_strides(std::int64_t stride) const { return {seq * stride, kWidth, stride, 1}; }
  Dims column_strides(std::int64_t stride) const { return {seq * stride, kWidth, 1, stride}; }
  Dims dense_rows() const { return {heads * seq * kWidth, seq * kWidth, kWidth, 1}; }
  Dims dense_statistics() const { return {heads * seq, seq, 1, 1}; }
  Dims transposed_scores() const { return {heads * seq * seq, seq * seq, 1, seq}; }

  std::int64_t batch;
  std::int64_t heads;
  std::int64_t seq;
};

// Graph pieces with fp32 arithmetic and inner results.
class Builder {
 public:
  Builder(CudnnGraph& graph, const Shapes& shapes) : graph_(graph), shapes_(shapes) {}

  Id pointwise(cudnnPointwiseMode_t mode, const std::vector<Id>& operands, const Dims& dims) {
    const Id result = graph_.inner(CUDNN_DATA_FLOAT, dims);
    graph_.pointwise({mode, CUDNN_DATA_FLOAT}, operands, result);
    return result;
  }
  Id on_scores(cudnnPointwiseMode_t mode, const std::vector<Id>& operands) {
    return pointwise(mode, operands, shapes_.scores());
  }
  Id on_statistics(cudnnPointwiseMode_t mode, const std::vector<Id>& operands) {
    return pointwise(mode, operands, shapes_.statistics());
  }
  Id reduce(cudnnReduceTensorOp_t operation, Id x) {
    const Id result = graph_.inner(CUDNN_DATA_FLOAT, shapes_.statistics());
    graph_.reduce(operation, x, result);
    return result;
  }
  Id scores(Id a, Id b) {
    const Id result = graph_.inner(CUDNN_DATA_FLOAT, shapes_.scores());
    graph_.matmul(a, b, result);
    return result;
  }

  // Keeps a score where its row is not before its column.
  Id causal(Id scores) {
    const Id row = graph_.inner(CUDNN_DATA_INT32, shapes_.scores());
    graph_.pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2}, {scores}, row);
    const Id column = graph_.inner(CUDNN_DATA_INT32, shapes_.scores());
    graph_.pointwise({CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3}, {scores}, column);
    const Id is_seen = graph_.inner(CUDNN_DATA_BOOLEAN, shapes_.scores());
    graph_.pointwise({CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN}, {row, column}, is_seen);
    const Id hidden = graph_.scalar(-std::numeric_limits<float>::infinity());
    return on_scores(CUDNN_POINTWISE_BINARY_SELECT, {scores, hidden, is_seen});
  }

  // A bf16 view of scores whose rows are the columns, for a product with them transposed.
  Id transposed(Id scores) {
    const Id result =
        graph_.inner(CUDNN_DATA_BFLOAT16, shapes_.scores(), shapes_.transposed_scores());
    graph_.reshape(scores, result);
    return result;
  }

 private:
  CudnnGraph& graph_;
  const Shapes& shapes_;
};

// softmax(mask(q k^T / 8)) v and the statistics max + log(sum).
class ForwardPlan {
 public:
  ForwardPlan(cudnnHandle_t handle, const AttentionShape& shape) : graph_(handle) {
    const Shapes shapes(shape);
    Builder build(graph_, shapes);
    q_ = graph_.memory(CUDNN_DATA_BFLOAT16, shapes.rows(), shapes.row_strides(shape.q_stride));
    k_ =
        graph_.memory(CUDNN_DATA_BFLOAT16, shapes.columns(), shapes.column_strides(shape.q_stride));
    v_ = graph_.memory(CUDNN_DATA_BFLOAT16, shapes.rows(), shapes.row_strides(shape.v_stride));
    out_ = graph_.memory(CUDNN_DATA_BFLOAT16, shapes.rows(), shapes.row_strides(shape.out_stride));
    log_sums_ = graph_.memory(CUDNN_DATA_FLOAT, shapes.statistics(), shapes.dense_statistics());

    const Id scaled =
        build.on_scores(CUDNN_POINTWISE_MUL, {build.scores(q_, k_), graph_.scalar(kScale)});
    const Id scores = build.causal(scaled);
    const Id max = build.reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
    const Id below = build.on_scores(CUDNN_POINTWISE_SUB, {scores, max});
    const Id powers = build.on_scores(CUDNN_POINTWISE_EXP, {below});
    const Id sum = build.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
    const Id log_sum = build.on_statistics(CUDNN_POINTWISE_LOG, {sum});
    graph_.pointwise({CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT}, {max, log_sum}, log_sums_);
    const Id weights = graph_.inner(CUDNN_DATA_BFLOAT16, shapes.scores());
    graph_.pointwise({CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT}, {powers, sum}, weights);
    graph_.matmul(weights, v_, out_);
    graph_.finish(false);
  }

  std::size_t workspace_bytes() const { return graph_.workspace_bytes(); }

  void run(const AttentionForward& args, void* workspace) const {
    graph_.run({{q_, const_cast<Bf16*>(args.q)},
                {k_, const_cast<Bf16*>(args.k)},
                {v_, const_cast<Bf16*>(args.v)},
                {out_, args.out},
                {log_sums_, args.log_sums}},
               workspace);
  }

 private:
  CudnnGraph graph_;
  Id q_, k_, v_, out_, log_sums_;
};

// dv = p^T dout;  ds = p * (dout v^T - delta) / 8;  dk = ds^T q;  dq = ds k.
class BackwardPlan {
 public:
  BackwardPlan(cudnnHandle_t handle, const AttentionShape& shape, bool is_deterministic)
      : graph_(handle), shapes_(shape), is_deterministic_(is_deterministic) {
    Builder build(graph_, shapes_);
    add_memory(shape);
    const Id products = build.pointwise(CUDNN_POINTWISE_MUL, {dout_, out_}, shapes_.rows());
    const Id sums = build.reduce(CUDNN_REDUCE_TENSOR_ADD, products);
    graph_.pointwise({CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT}, {sums, graph_.scalar(1.0F)}, deltas_);

    const Id scaled =
        build.on_scores(CUDNN_POINTWISE_MUL, {build.scores(q_, k_), graph_.scalar(kScale)});
    const Id below = build.on_scores(CUDNN_POINTWISE_SUB, {scaled, log_sums_});
    const Id weights = build.on_scores(CUDNN_POINTWISE_EXP, {build.causal(below)});
    graph_.matmul(build.transposed(weights), dout_, dv_);

    const Id dweights = build.scores(dout_, v_);
    const Id centred = build.on_scores(CUDNN_POINTWISE_SUB, {dweights, deltas_});
    const Id unscaled = build.on_scores(CUDNN_POINTWISE_MUL, {centred, weights});
    const Id dscores = build.on_scores(CUDNN_POINTWISE_MUL, {unscaled, graph_.scalar(kScale)});
    graph_.matmul(build.transposed(dscores), q_, dk_);
    add_dq(shape, dscores);
    graph_.finish(is_deterministic);
  }

  std::size_t workspace_bytes() const {
    return aligned(delta_bytes()) + aligned(sum_bytes()) + graph_.workspace_bytes();
  }

  void run(const AttentionBackward& args, void* workspace) const {
    auto* bytes = static_cast<char*>(workspace);
    std::vector<std::pair<Id, void*>> bindings = {{q_, const_cast<Bf16*>(args.q)},
                                                  {k_, const_cast<Bf16*>(args.k)},
                                                  {v_, const_cast<Bf16*>(args.v)},
                                                  {out_, const_cast<Bf16*>(args.out)},
                                                  {dout_, const_cast<Bf16*>(args.dout)},
                                                  {log_sums_, const_cast<float*>(args.log_sums)},
                                                  {dq_, args.dq},
                                                  {dk_, args.dk},
                                                  {dv_, args.dv},
                                                  {deltas_, bytes}};
    bytes += aligned(delta_bytes());
    if (!is_deterministic_) bindings.emplace_back(dq_sum_, bytes);
    bytes += aligned(sum_bytes());
    graph_.run(bindings, bytes);
  }

 private:
  std::size_t delta_bytes() const {
    return static_cast<std::size_t>(shapes_.batch * shapes_.heads * shapes_.seq) * sizeof(float);
  }
  std::size_t sum_bytes() const {
    return is_deterministic_ ? 0 : delta_bytes() * static_cast<std::size_t>(kWidth);
  }

  void add_memory(const AttentionShape& shape) {
    const auto rows = [this](std::int64_t stride) {
      return graph_.memory(CUDNN_DATA_BFLOAT16, shapes_.rows(), shapes_.row_strides(stride));
    };
    const auto columns = [this](std::int64_t stride) {
      return graph_.memory(CUDNN_DATA_BFLOAT16, shapes_.columns(), shapes_.column_strides(stride));
    };
    const auto statistics = [this] {
      return graph_.memory(CUDNN_DATA_FLOAT, shapes_.statistics(), shapes_.dense_statistics());
    };
    q_ = rows(shape.q_stride);
    k_ = columns(shape.q_stride);
    v_ = columns(shape.v_stride);
    out_ = rows(shape.out_stride);
    dout_ = rows(shape.out_stride);
    log_sums_ = statistics();
    deltas_ = statistics();
    dq_ = rows(shape.q_stride);
    dk_ = rows(shape.q_stride);
    dv_ = rows(shape.v_stride);
  }

  // Many blocks add to a dq: into an fp32 buffer when the order may vary, else cuDNN keeps them
  // apart in its own workspace.
  void add_dq(const AttentionShape& shape, Id dscores) {
    const Id k_rows =
        graph_.inner(CUDNN_DATA_BFLOAT16, shapes_.rows(), shapes_.row_strides(shape.q_stride));
    graph_.reshape(k_, k_rows);
    if (is_deterministic_) {
      graph_.matmul(dscores, k_rows, dq_);
      return;
    }
    dq_sum_ = graph_.memory(CUDNN_DATA_FLOAT, shapes_.rows(), shapes_.dense_rows());
    graph_.matmul(dscores, k_rows, dq_sum_);
    graph_.pointwise({CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT}, {dq_sum_}, dq_);
  }

  CudnnGraph graph_;
  Shapes shapes_;
  bool is_deterministic_;
  Id q_ = 0, k_ = 0, v_ = 0, out_ = 0, dout_ = 0, log_sums_ = 0, deltas_ = 0;
  Id dq_ = 0, dk_ = 0, dv_ = 0, dq_sum_ = 0;
};

}  // namespace

class CudnnAttention::Cache {
 public:
  explicit Cache(bool is_deterministic) : is_deterministic_(is_deterministic) {
    check(cudnnCreate(&handle_), "a handle");
  }
  ~Cache() {
    forwards_.clear();
    backwards_.clear();
    cudnnDestroy(handle_);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const ForwardPlan& forward(const AttentionShape& shape) {
    auto& plan = forwards_[shape];
    if (plan == nullptr) plan = std::make_unique<ForwardPlan>(handle_, shape);
    return *plan;
  }
  const BackwardPlan& backward(const AttentionShape& shape) {
    auto& plan = backwards_[shape];
    if (plan == nullptr) plan = std::make_unique<BackwardPlan>(handle_, shape, is_deterministic_);
    return *plan;
  }
  void use(cudaStream_t stream) { check(cudnnSetStream(handle_, stream), "a stream"); }

 private:
  bool is_deterministic_;
  cudnnHandle_t handle_ = nullptr;
  std::map<AttentionShape, std::unique_ptr<ForwardPlan>> forwards_;
  std::map<AttentionShape, std::unique_ptr<BackwardPlan>> backwards_;
};

CudnnAttention::CudnnAttention(bool is_deterministic)
    : cache_(std::make_unique<Cache>(is_deterministic)) {}

CudnnAttention::~CudnnAttention() = default;

std::size_t CudnnAttention::workspace_bytes(const AttentionShape& shape) {
  return std::max(cache_->forward(shape).workspace_bytes(),
                  cache_->backward(shape).workspace_bytes());
}

void CudnnAttention::forward(const AttentionShape& shape, const AttentionForward& args,
                             void* workspace, cudaStream_t stream) {
  cache_->use(stream);
  cache_->forward(shape).run(args, workspace);
}

void CudnnAttention::backward(const AttentionShape& shape, const AttentionBackward& args,
                              void* workspace, cudaStream_t stream) {
  cache_->use(stream);
  cache_->backward(shape).run(args, workspace);
}

}  // namespace zeroproof::cuda
