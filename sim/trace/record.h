#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "zeroproof/internal/model/graph_snapshot.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// The records of hooktrace 1.x (docs/reference/trace_format.md section 3), one struct a record
// type. An empty string or vector means that the optional field is absent.

struct TraceClock {
  std::string source;
  std::int64_t mono0_ns = 0;  // monotonic clock when the recording started
  std::int64_t unix0_ns = 0;  // wall clock at the same moment
  friend bool operator==(const TraceClock&, const TraceClock&) = default;
};

// A check that the recorder itself ran over what it recorded.
struct TraceCheck {
  std::string name;
  bool is_ok = false;
  std::string detail;
  friend bool operator==(const TraceCheck&, const TraceCheck&) = default;
};

struct HeaderRecord {
  std::array<std::int64_t, 2> version = {1, 0};  // major, minor
  std::int32_t rank = 0;
  std::int32_t world = 1;
  TraceClock clock;
  std::vector<std::pair<std::string, std::optional<std::string>>> producer;  // as written
  std::string program;
  std::string description;
  std::string dtype;
  std::string policy;  // manager scripts
  std::string mode;    // manager scripts
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> stage;
  std::optional<bool> is_match;     // the recorder's own comparison with `expect`
  std::vector<std::string> expect;  // predicted order tokens
  std::vector<TraceCheck> checks;
  std::vector<std::string> notes;
  friend bool operator==(const HeaderRecord&, const HeaderRecord&) = default;
};

struct ThreadRecord {
  std::int32_t thread = 0;
  std::string name;
  bool is_main = false;
  friend bool operator==(const ThreadRecord&, const ThreadRecord&) = default;
};

struct ParamRecord {
  std::int64_t id = 0;
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype;
  bool requires_grad = true;
  friend bool operator==(const ParamRecord&, const ParamRecord&) = default;
};

struct TensorRecord {
  std::string role;  // param, input, output, grad, param_final, param_step0, opt_state, …
  std::string name;
  std::optional<std::vector<std::int64_t>> shape;
  std::string dtype;
  std::optional<std::vector<double>> values;  // row-major; nullopt: there is no such tensor
  friend bool operator==(const TensorRecord&, const TensorRecord&) = default;
};

struct GroupRecord {
  std::string name;
  std::optional<std::vector<std::int32_t>> ranks;
  std::string description;  // PyTorch's group_desc: "EXPERT_MODEL_PARALLEL_GROUP"
  std::string backend;      // "gloo", "nccl"
  friend bool operator==(const GroupRecord&, const GroupRecord&) = default;
};

struct GraphRecord {
  GraphSnapshot graph;
};

// What wraps one model of the job; a later record of the same model replaces the earlier one.
struct WrapperRecord {
  std::int64_t model = 0;
  std::string kind;        // "ddp", "fsdp1", "fsdp2", "dtensor", "deepspeed", "unknown"
  std::string class_name;  // Python's, written "class"
  std::string group;       // of its data parallelism
  std::string comm_hook;
  std::string reason;  // why it is not understood
  std::vector<std::string> ignored;
  std::int64_t size = 1;  // ranks of `group`
  std::optional<std::int64_t> trainable;
  std::optional<std::int64_t> frozen;
  bool is_understood = true;
  bool has_static_graph = false;
  bool finds_unused = false;
  friend bool operator==(const WrapperRecord&, const WrapperRecord&) = default;
};

// What an optimizer holds; a later record of the same id replaces the earlier one.
struct OptimizerRecord {
  std::int64_t id = 0;
  std::string class_name;  // Python's, written "class"
  std::vector<std::string> params;
  std::int64_t unknown = 0;  // tensors that belong to no recorded model
  std::int64_t frozen = 0;   // parameters that need no gradient
  std::optional<std::int64_t> engine;
  friend bool operator==(const OptimizerRecord&, const OptimizerRecord&) = default;
};

// Hashes and norms of parameters and gradients around one step, `params[i]` with each list's [i];
// nullopt: there was no such tensor. An empty list was not recorded.
struct NumbersRecord {
  std::int64_t step = 0;
  bool is_after_step = false;  // written "when": "before_step" or "after_step"
  std::int64_t optimizer = -1;
  std::int64_t engine = -1;
  std::vector<std::string> params;
  std::vector<std::optional<std::string>> grad_hashes;  // 16 hexadecimal digits
  std::vector<std::optional<std::string>> param_hashes;
  std::vector<std::optional<double>> grad_norms;
  std::vector<std::optional<double>> param_norms;
  std::vector<std::string> bad;  // names with a value that is not finite
  friend bool operator==(const NumbersRecord&, const NumbersRecord&) = default;
};

struct NoteRecord {
  std::string text;
  std::string observer;           // the part of the recorder that does not observe
  std::vector<std::string> lost;  // kinds, or `word.*`, of which this file may lack events
  friend bool operator==(const NoteRecord&, const NoteRecord&) = default;
};

struct EndRecord {
  std::uint64_t events = 0;
  std::uint64_t records = 0;  // events included; header and end excluded
  friend bool operator==(const EndRecord&, const EndRecord&) = default;
};

// A record type of a later minor version; only its line is known.
struct UnknownRecord {
  std::string type;
  friend bool operator==(const UnknownRecord&, const UnknownRecord&) = default;
};

using RecordBody = std::variant<HookEvent, HeaderRecord, ThreadRecord, ParamRecord, TensorRecord,
                                GroupRecord, GraphRecord, WrapperRecord, OptimizerRecord,
                                NumbersRecord, NoteRecord, EndRecord, UnknownRecord>;

// One line of a trace. `line` holds its bytes without the newline and everything that `body` has
// no member for; it is valid until the reader moves on.
struct Record {
  RecordBody body;
  std::string_view line;
  std::uint64_t line_number = 0;  // 1, 2, …

  const HookEvent* event() const { return std::get_if<HookEvent>(&body); }
};

}  // namespace zeroproof
