#include "engine/runtime/cuda/fused/attention.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>

#include "engine/runtime/cuda/fused/cudnn_attention.h"
#include "tests/cuda/check.h"

namespace zeroproof::check {
namespace {

constexpr std::size_t kWidth = 64;

struct Shape {
  std::size_t batch;
  std::size_t seq;
  std::size_t heads;
  std::size_t model() const { return heads * kWidth; }
  std::size_t tokens() const { return batch * seq; }
  cuda::AttentionShape strides() const {
    const auto width = static_cast<std::int64_t>(model());
    return {static_cast<int>(batch),
            static_cast<int>(heads),
            static_cast<int>(seq),
            3 * width,
            3 * width,
            width};
  }
};

std::string text(const Shape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.seq) + "x" + std::to_string(s.heads);
}

// qkv and dqkv packed, [batch, seq, 3, heads, 64]; out [batch, seq, heads, 64].
struct Reference {
  std::vector<double> out, log_sums, dqkv;
};

// One row of weights: softmax over the keys up to the query.
double weigh(const double* q, const double* k, std::size_t keys, std::size_t stride,
             std::vector<double>& weights) {
  double max = -1e300;
  for (std::size_t j = 0; j < keys; ++j) {
    double score = 0.0;
    for (std::size_t i = 0; i < kWidth; ++i) score += q[i] * k[j * stride + i];
    weights[j] = score * 0.125;
    max = std::max(max, weights[j]);
  }
  double sum = 0.0;
  for (std::size_t j = 0; j < keys; ++j) sum += weights[j] = std::exp(weights[j] - max);
  for (std::size_t j = 0; j < keys; ++j) weights[j] /= sum;
  return max + std::log(sum);
}

void add_query(const Shape& s, const std::vector<double>& qkv, const std::vector<double>& dout,
               std::size_t batch_head, std::size_t query, Reference& r) {
  const std::size_t stride = 3 * s.model();
  const std::size_t head = batch_head % s.heads * kWidth;
  const std::size_t first = batch_head / s.heads * s.seq;
  const std::size_t q = (first + query) * stride + head;
  const std::size_t k = first * stride + s.model() + head;
  const std::size_t v = first * stride + 2 * s.model() + head;
  const std::size_t o = (first + query) * s.model() + head;
  std::vector<double> weights(query + 1);
  r.log_sums[batch_head * s.seq + query] =
      weigh(qkv.data() + q, qkv.data() + k, query + 1, stride, weights);
  double delta = 0.0;
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t j = 0; j <= query; ++j) r.out[o + i] += weights[j] * qkv[v + j * stride + i];
    delta += r.out[o + i] * dout[o + i];
  }
  for (std::size_t j = 0; j <= query; ++j) {
    double dweight = 0.0;
    for (std::size_t i = 0; i < kWidth; ++i) dweight += dout[o + i] * qkv[v + j * stride + i];
    const double dscore = weights[j] * (dweight - delta) * 0.125;
    for (std::size_t i = 0; i < kWidth; ++i) {
      r.dqkv[v + j * stride + i] += weights[j] * dout[o + i];
      r.dqkv[k + j * stride + i] += dscore * qkv[q + i];
      r.dqkv[q + i] += dscore * qkv[k + j * stride + i];
    }
  }
}

Reference reference(const Shape& s, const std::vector<double>& qkv,
                    const std::vector<double>& dout) {
  Reference r{std::vector<double>(dout.size()), std::vector<double>(s.tokens() * s.heads),
              std::vector<double>(qkv.size())};
  for (std::size_t batch_head = 0; batch_head < s.batch * s.heads; ++batch_head) {
    for (std::size_t query = 0; query < s.seq; ++query) {
      add_query(s, qkv, dout, batch_head, query, r);
    }
  }
  return r;
}

// The buffers of one attention, and the calls over them.
struct Tensors {
  explicit Tensors(const Shape& s)
      : shape(s),
        qkv(s.tokens() * 3 * s.model()),
        dqkv(qkv.size()),
        out(s.tokens() * s.model()),
        dout(out.size()),
        log_sums(s.tokens() * s.heads),
        deltas(log_sums.size()) {}

  cuda::AttentionForward forward() const {
    return {qkv.data(), qkv.at(shape.model()), qkv.at(2 * shape.model()), out.data(),
            log_sums.data()};
  }
  cuda::AttentionBackward backward() const {
    return {qkv.data(),
            qkv.at(shape.model()),
            qkv.at(2 * shape.model()),
            out.data(),
            dout.data(),
            log_sums.data(),
            dqkv.data(),
            dqkv.at(shape.model()),
            dqkv.at(2 * shape.model())};
  }
  void poison() {
    out.poison();
    log_sums.poison();
    dqkv.poison();
    deltas.poison();
  }

  Shape shape;
  Buffer<Bf16> qkv, dqkv, out, dout;
  Buffer<float> log_sums, deltas;
};

// Either implementation, by name.
class Attention {
 public:
  virtual ~Attention() = default;
  virtual std::string name() const = 0;
  virtual void prepare(const Shape& shape) = 0;
  virtual void forward(const Tensors& t) = 0;
  virtual void backward(const Tensors& t) = 0;
};

class Own final : public Attention {
 public:
  std::string name() const override { return "attention own"; }
  void prepare(const Shape&) override {}
  void forward(const Tensors& t) override {
    ZP_REQUIRE(cuda::attention_forward(t.shape.strides(), t.forward(), nullptr));
  }
  void backward(const Tensors& t) override {
    ZP_REQUIRE(cuda::attention_backward(t.shape.strides(), t.backward(), t.deltas.data(), nullptr));
  }
};

class Cudnn final : public Attention {
 public:
  explicit Cudnn(bool is_deterministic)
      : is_deterministic_(is_deterministic), attention_(is_deterministic) {}
  std::string name() const override {
    return is_deterministic_ ? "attention cudnn det" : "attention cudnn";
  }
  void prepare(const Shape& shape) override {
    workspace_ = std::make_unique<Buffer<char>>(attention_.workspace_bytes(shape.strides()));
  }
  void forward(const Tensors& t) override {
    attention_.forward(t.shape.strides(), t.forward(), workspace_->data(), nullptr);
  }
  void backward(const Tensors& t) override {
    attention_.backward(t.shape.strides(), t.backward(), workspace_->data(), nullptr);
  }
  std::size_t workspace_bytes() const { return workspace_->size(); }

 private:
  bool is_deterministic_;
  cuda::CudnnAttention attention_;
  std::unique_ptr<Buffer<char>> workspace_;
};

std::vector<double> slice(const Shape& s, const std::vector<double>& packed, std::size_t part) {
  std::vector<double> out;
  for (std::size_t token = 0; token < s.tokens(); ++token) {
    const auto* first = packed.data() + (token * 3 + part) * s.model();
    out.insert(out.end(), first, first + s.model());
  }
  return out;
}

void check_against(Suite& suite, Attention& attention, Tensors& t, const Reference& want) {
  const std::string name = attention.name();
  const std::string shape = text(t.shape);
  t.poison();
  attention.prepare(t.shape);
  attention.forward(t);
  attention.backward(t);
  ZP_REQUIRE(cudaDeviceSynchronize());
  compare(suite, {name + " out", shape, 5e-3}, t.out, want.out);
  compare(suite, {name + " log_sums", shape, 1e-5}, t.log_sums, want.log_sums);
  const auto first = t.dqkv.download();
  const auto got = widened(first);
  const char* names[] = {" dq", " dk", " dv"};
  for (std::size_t part = 0; part < 3; ++part) {
    compare(suite, {name + names[part], shape, 1e-2}, slice(t.shape, got, part),
            slice(t.shape, want.dqkv, part));
  }
  t.dqkv.poison();
  attention.backward(t);
  const bool is_equal = t.dqkv.download() == first;
  if (name == "attention cudnn") {
    std::printf("%-30s %-26s twice: %s\n", name.c_str(), shape.c_str(),
                is_equal ? "equal bits" : "other bits (allowed)");
  } else {
    expect(suite, name + " twice", shape, is_equal);
  }
}

std::vector<std::unique_ptr<Attention>> implementations(const Suite& suite) {
  std::vector<std::unique_ptr<Attention>> all;
  if (suite.wants("attention own")) all.push_back(std::make_unique<Own>());
  if (suite.wants("attention cudnn")) all.push_back(std::make_unique<Cudnn>(false));
  if (suite.wants("attention cudnn det")) all.push_back(std::make_unique<Cudnn>(true));
  return all;
}

// One implementation that fails must not hide the others.
template <class Run>
void guarded(Suite& suite, Attention& attention, const Shape& shape, const Run& run) {
  try {
    run();
  } catch (const std::exception& error) {
    ++suite.failures;
    std::printf("%-30s %-26s FAIL: %s\n", attention.name().c_str(), text(shape).c_str(),
                error.what());
  }
}

void check_shape(Suite& suite, const Shape& shape) {
  Random random(shape.seq);
  Tensors t(shape);
  const auto qkv = random.normals(t.qkv.size());
  const auto dout = random.normals(t.dout.size());
  t.qkv.upload(qkv);
  t.dout.upload(dout);
  const Reference want = reference(shape, widened(qkv), widened(dout));
  for (const auto& attention : implementations(suite)) {
    guarded(suite, *attention, shape, [&] { check_against(suite, *attention, t, want); });
  }
}

// The whole M267 shape: the implementations against the first of them.
void compare_and_time(Suite& suite, const Shape& shape) {
  Tensors t(shape);
  t.qkv.fill(21);
  t.dout.fill(22);
  std::vector<double> out, dqkv;
  const auto heads = static_cast<double>(shape.batch * shape.heads);
  const double product = heads * static_cast<double>(shape.seq * shape.seq * kWidth);
  const double bytes = static_cast<double>(shape.tokens() * shape.model()) * 2.0;
  for (const auto& attention : implementations(suite)) {
    guarded(suite, *attention, shape, [&] {
      t.poison();
      attention->prepare(shape);
      attention->forward(t);
      attention->backward(t);
      ZP_REQUIRE(cudaDeviceSynchronize());
      if (out.empty()) {
        out = widened(t.out.download());
        dqkv = widened(t.dqkv.download());
      } else {
        compare(suite, {attention->name() + " out vs own", text(shape), 5e-3}, t.out, out);
        compare(suite, {attention->name() + " dqkv vs own", text(shape), 1e-2}, t.dqkv, dqkv);
      }
      if (!suite.is_timing) return;
      time({attention->name() + " fwd", text(shape), 4.0 * bytes, 2.0 * product},
           [&](int) { attention->forward(t); });
      time({attention->name() + " bwd", text(shape), 8.0 * bytes, 5.0 * product},
           [&](int) { attention->backward(t); });
      if (const auto* cudnn = dynamic_cast<const Cudnn*>(attention.get())) {
        std::printf("     %s workspace %.1f MB\n", attention->name().c_str(),
                    static_cast<double>(cudnn->workspace_bytes()) / 1e6);
      }
    });
  }
}

}  // namespace

void check_attention(Suite& suite) {
  if (!suite.wants("attention own") && !suite.wants("attention cudnn det")) return;
  check_shape(suite, {1, 64, 1});
  check_shape(suite, {2, 128, 2});
  check_shape(suite, {1, 100, 3});
  if (suite.is_small) return;
  check_shape(suite, {2, 256, 3});
  check_shape(suite, {1, 333, 2});
  check_shape(suite, {1, 512, 2});
  compare_and_time(suite, {8, 1024, 16});
  compare_and_time(suite, {8, 512, 16});
}

}  // namespace zeroproof::check
