#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/protocol/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// One node of one task.
struct NodeRef {
  TaskIndex task;
  std::size_t node = 0;
  friend auto operator<=>(const NodeRef&, const NodeRef&) = default;
};

// What the code around a graph is called in Python.
struct PythonPlace {
  // The layer of a parameter: "self.p4". An error where the place cannot reach it.
  std::function<Result<std::string>(const ProtocolNode& accumulate)> layer;
  // What a tensor that an engine returned is called here; empty: its graph is written out here too.
  std::function<std::string(NodeRef output_hook)> output;
  // What is called for the forward of a reentrant checkpoint: "self.segment".
  std::function<Result<std::string>(const ProtocolNode& recompute)> recomputed;
};

// Lines of a Python function body that builds the graph below some nodes, and the expressions of
// these nodes. Nodes are made in the order of their sequence numbers, as autograd made them; a node
// that two roots share is made once.
struct PythonBody {
  std::vector<std::string> lines;
  std::vector<std::string> values;  // one a root
};

// `x` is the name of the input.
Result<PythonBody> python_body(const ProtocolProgram& program, const std::vector<NodeRef>& roots,
                               const PythonPlace& place);

// Numbers that are equal for two nodes exactly when the graphs below them are written the same.
class GraphSignatures {
 public:
  // The program must outlive it.
  explicit GraphSignatures(const ProtocolProgram& program) : program_(&program) {}
  int of(NodeRef ref);

 private:
  const ProtocolProgram* program_;
  std::map<NodeRef, int> known_;
  std::map<std::string, int> numbers_;  // by what is written
};

}  // namespace zeroproof
