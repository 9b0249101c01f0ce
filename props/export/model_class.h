#pragma once

#include <map>
#include <string>
#include <vector>

#include "props/export/python_graph.h"
#include "sim/protocol/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What engine.forward returns for one label: the outputs, in order.
struct ForwardOutputs {
  EngineId engine;
  std::string label;
  std::vector<NodeRef> hooks;  // one a tensor
};

// Every label that an output hook names, with its distinct outputs; equal graphs are one output.
std::vector<ForwardOutputs> forward_outputs(const ProtocolProgram& program);

// The attribute of a parameter's layer: "layer_p4".
std::string layer_name(const ProtocolEngineSpec& engine, const std::string& param);

// The Python class of one engine's module: a layer a parameter, a method for each forward and for
// each checkpointed or tiled segment.
Result<std::string> model_class(const ProtocolProgram& program, EngineId engine,
                                const std::string& class_name);

}  // namespace zeroproof
