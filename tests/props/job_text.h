#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/props/trace_text.h"

namespace zeroproof {

// A recording of hooktrace 1.1 of a model of two matrices and a bias.
class Job : public TraceText {
 public:
  explicit Job(int rank = 0, int world = 2,
               std::string_view producer = "\"tool\":\"zeroproof-recorder 0.1\"")
      : TraceText(rank, world, producer) {}

  Job& model() {
    for (const char* name : {"a.weight", "b.weight"})
      record(
          fmt::format("{{\"rec\":\"param\",\"id\":0,\"name\":\"{}\",\"shape\":[4,4],\"dtype\":"
                      "\"float32\",\"requires_grad\":true}}",
                      name));
    record(R"({"rec":"param","id":2,"name":"b.bias","shape":[4],"dtype":"float32",)"
           R"("requires_grad":true})");
    return *this;
  }
  Job& ddp(std::string_view more = "") {
    record(
        fmt::format("{{\"rec\":\"wrapper\",\"model\":0,\"kind\":\"ddp\",\"class\":"
                    "\"DistributedDataParallel\",\"understood\":true,\"group\":\"world\","
                    "\"size\":2,\"static_graph\":false,\"find_unused\":false,\"trainable\":3,"
                    "\"frozen\":0{}}}",
                    more));
    return *this;
  }
  Job& optimizer(std::string_view params, int unknown = 0) {
    record(
        fmt::format("{{\"rec\":\"optimizer\",\"id\":0,\"class\":\"SGD\",\"params\":[{}],"
                    "\"unknown\":{},\"frozen\":0}}",
                    params, unknown));
    return *this;
  }
  Job& forward(std::string_view module) {
    event("module.fwd_pre", -1, fmt::format(",\"module\":\"{}\"", module));
    event("module.fwd_post", -1, fmt::format(",\"module\":\"{}\"", module));
    return *this;
  }
  Job& mark(std::string_view label, std::string_view more = "") {
    event("mark", -1, fmt::format(",\"label\":\"{}\"{}", label, more));
    return *this;
  }
  Job& backward(bool is_reduced, std::string_view params = R"("b.bias","b.weight","a.weight")") {
    const int task = ++tasks_;
    begin(task);
    for (const char* name : {"b.bias", "b.weight", "a.weight"}) accumulate(task, name);
    if (is_reduced) reduce(task, params);
    end(task);
    return *this;
  }
  Job& reduce(int task, std::string_view params) {
    const int bytes = (params.find("a.weight") != std::string_view::npos ? 64 : 0) +
                      (params.find("b.weight") != std::string_view::npos ? 64 : 0) +
                      (params.find("b.bias") != std::string_view::npos ? 16 : 0);
    event("bucket.ready", task,
          fmt::format(",\"index\":0,\"bytes\":{},\"params\":[{}],\"last\":true", bytes, params));
    return all_reduce(bytes);
  }
  Job& all_reduce(int bytes, std::string_view op = "all_reduce") {
    const std::string key =
        fmt::format(",\"op\":\"{}\",\"cseq\":{},\"group\":\"world\",\"key\":\"world:{}\"", op,
                    number_, number_);
    ++number_;
    event("coll.issue", -1, fmt::format("{},\"bytes\":{},\"async\":false", key, bytes));
    event("coll.complete", -1, key);
    return *this;
  }
  Job& step(int grads = 3) {
    event("opt.step", -1, fmt::format(",\"engine\":0,\"optimizer\":0,\"grads\":{}", grads));
    return *this;
  }
  Job& zero_grad() {
    event("opt.zero_grad", -1);
    return *this;
  }
  std::string newer(bool is_complete = true) const {
    std::string all = text(is_complete);
    all.replace(all.find("[1,0]"), 5, "[1,1]");
    return all;
  }

 private:
  int tasks_ = 0;
  int number_ = 0;
};

inline constexpr std::string_view kAll = R"("a.weight","b.weight","b.bias")";

inline Job ddp_job() {
  Job job;
  job.record(R"({"rec":"group","name":"world","ranks":[0,1]})");
  job.model().ddp().optimizer(kAll);
  return job;
}

inline std::vector<Diagnosis> diagnosis(const Job& job) {
  return diagnosis_of_texts({job.newer()});
}

}  // namespace zeroproof
